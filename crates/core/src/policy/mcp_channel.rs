//! MCP servers that push messages into an agent's conversation, as the person set them.

use std::path::PathBuf;

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
