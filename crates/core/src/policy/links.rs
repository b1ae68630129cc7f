//! Links to other machines and to MCP servers, as the person set them.

use std::path::PathBuf;

/// A link to one machine, or to a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayLink {
    /// What the machine is called here, or the team.
    pub name: String,
    /// The program that connects to `ringer relay serve --stdio` there, and its arguments. A team has none.
    pub command: Vec<String>,
    /// The host, if the program is ssh.
    pub ssh: Option<String>,
    /// Whether what agents ask there may be answered from here. For a team: whether its other machines may answer what agents
    /// ask here, and write to them.
    pub may_answer: bool,
    /// Whether messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The server, if it is a team.
    pub team: Option<TeamLink>,
}

/// How a machine takes part in a team: all of its machines exchange messages over a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamLink {
    /// The addresses of the server, or of the servers of a cluster. One that answers is used.
    pub urls: Vec<String>,
    /// The `jetstream` domain that the stream is in, where the server is a leaf node.
    pub domain: Option<String>,
    /// What this machine is called in the team; without it, its host name.
    pub machine: Option<String>,
    /// The file with what this machine proves itself with.
    pub credentials: Option<PathBuf>,
    /// The certificate that the server's one is signed with, where it is not one that the system trusts.
    pub ca: Option<PathBuf>,
    /// Whether what the person reads, clears or snoozes counts on the other machines, too.
    pub share_marks: bool,
}

/// A name that the person gave to a repository of this machine. Repositories of one name on several machines are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName {
    /// The root of one of its worktrees.
    pub path: PathBuf,
    /// The name.
    pub name: String,
}

/// The servers, and whether any of them may be connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpChannels {
    /// The kill switch.
    pub enabled: bool,
    /// The servers, in the order of the file.
    pub servers: Vec<McpChannel>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpChannel {
    /// What the person calls it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// The agent that its messages are for: a name or an id.
    pub to: String,
    /// The senders that may write, by the names that the server has for them.
    pub allow: Vec<String>,
    /// Whether it, and the senders that it brings, may allow or deny what the agent asks a permission for.
    pub may_answer: bool,
}
