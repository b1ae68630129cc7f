//! An MCP server that asks to push messages into a conversation, and the policy it is checked against.

use std::collections::BTreeSet;
use std::fmt;

use crate::source::McpServer;

/// A plugin, by its name and where it was installed from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plugin {
    /// The marketplace.
    pub marketplace: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Display for Plugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name, self.marketplace)
    }
}

/// An MCP server that asks to push messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelCandidate {
    /// The server.
    pub server: McpServer,
    /// Whether it declares `experimental["claude/channel"]`.
    pub declares_channel: bool,
    /// The plugin it comes from, if any.
    pub plugin: Option<Plugin>,
}

/// How the person is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Auth {
    /// With the token of an account.
    OAuth,
    /// With an API key, which is not tied to one person.
    ApiKey,
    /// Not at all.
    SignedOut,
    /// The client does not tie channels to an account.
    NotRequired,
}

/// What kind of account it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    /// A personal account, without an organisation's policy.
    Personal,
    /// An account of a team or an enterprise, whose policy may set `channelsEnabled`.
    Managed {
        /// The setting. Unset means no.
        channels_enabled: Option<bool>,
    },
}

/// What every candidate is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPolicy {
    /// The kill switch.
    pub channels_enabled: bool,
    /// How the person is signed in.
    pub auth: Auth,
    /// With what kind of account.
    pub account: Account,
    /// The servers named by `--channels` for this session.
    pub opted_in: BTreeSet<McpServer>,
    /// The marketplaces that are verified.
    pub verified: BTreeSet<String>,
    /// The approved plugins.
    pub approved: BTreeSet<Plugin>,
}
