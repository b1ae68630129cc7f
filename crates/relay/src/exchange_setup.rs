//! What a connection is made of.

use ringer_journal::Home;

use crate::answers::GiveAnswer;
use crate::given_name::GivenName;
use crate::repository_names::RepositoryNames;

/// What a connection is made of.
#[derive(Debug, Clone)]
pub struct ExchangeSetup {
    /// The home of this machine.
    pub home: Home,
    /// The version of this program.
    pub program: String,
    /// Whether this is the far end of a link, which is also asked for other things than messages.
    pub is_far_end: bool,
    /// What the other machine is called here. Without a name, it is called as it calls itself.
    pub name: Option<GivenName>,
    /// Gives answers of the other machine to what agents ask here. Without it, that machine may neither answer nor write to
    /// agents.
    pub give_answer: Option<GiveAnswer>,
    /// Whether the person at this machine wants to answer what agents ask there.
    pub may_answer: bool,
    /// Whether messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The names of repositories here.
    pub repository_names: RepositoryNames,
}
