//! Links to other machines, as the person set them.

/// A link to one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayLink {
    /// What the machine is called here.
    pub name: String,
    /// The program that connects to `ringer relay serve --stdio` there, and its arguments.
    pub command: Vec<String>,
    /// The host, if the program is ssh.
    pub ssh: Option<String>,
    /// Whether what agents ask there may be answered from here.
    pub may_answer: bool,
    /// Whether messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
}
