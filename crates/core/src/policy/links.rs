//! Configured links to other machines and to MCP servers.

use std::path::PathBuf;

/// A link to one machine, or to a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayLink {
    /// The local name of the machine or team.
    pub name: String,
    /// The command that connects to `ringer relay serve --stdio` there. Empty for a team.
    pub command: Vec<String>,
    /// The host, if the program is ssh.
    pub ssh: Option<String>,
    /// True if prompts of agents there may be answered from here. For a team: true if its other machines may answer prompts of
    /// agents here, and write to them.
    pub may_answer: bool,
    /// True if messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The server of a team.
    pub team: Option<TeamLink>,
}

/// Membership in a team, whose machines exchange messages over a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamLink {
    /// The addresses of the server, or of a cluster's servers. One that answers is used.
    pub urls: Vec<String>,
    /// The `JetStream` domain of the stream, if the server is a leaf node.
    pub domain: Option<String>,
    /// This machine's name in the team. The default is its host name.
    pub machine: Option<String>,
    /// The file with this machine's credentials.
    pub credentials: Option<PathBuf>,
    /// The CA certificate of the server, if the system does not trust it.
    pub ca: Option<PathBuf>,
    /// True if what the person reads, clears or snoozes here applies to the other machines, too.
    pub share_marks: bool,
}

/// A name that the person gave to a repository of this machine. Repositories with the same name on several machines are the
/// same repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName {
    /// The root of one of its worktrees.
    pub path: PathBuf,
    /// The name.
    pub name: String,
}

/// The MCP servers to connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpChannels {
    /// The kill switch.
    pub enabled: bool,
    /// The servers, in the order of the file.
    pub servers: Vec<McpChannel>,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpChannel {
    /// Its name in the settings.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// The agent that its messages are for: a name or an id.
    pub to: String,
    /// The senders that may write, by their names on the server.
    pub allow: Vec<String>,
    /// True if it and its senders may answer the agent's permission requests.
    pub may_answer: bool,
}
