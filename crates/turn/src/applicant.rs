//! Who asks to push messages into a conversation, and under what circumstances.

use std::collections::BTreeSet;
use std::fmt;

use crate::source::Server;

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

/// An MCP server that wants to push, and what it brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applicant {
    /// The server.
    pub server: Server,
    /// Whether it declares `experimental["claude/channel"]`.
    pub declares_channel: bool,
    /// The plugin that brought it, if one did.
    pub plugin: Option<Plugin>,
}

/// How the person is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Auth {
    /// With the token of an account.
    OAuth,
    /// With an API key, which belongs to nobody in particular.
    ApiKey,
    /// Not at all.
    SignedOut,
}

/// What kind of account it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    /// The person's own: there is nobody else to ask.
    Personal,
    /// One of a team or an enterprise, whose policy may say something about `channelsEnabled`.
    Managed {
        /// What it says. Silence is a no.
        channels_enabled: Option<bool>,
    },
}

/// What holds for every applicant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circumstances {
    /// The kill switch.
    pub channels_enabled: bool,
    /// How the person is signed in.
    pub auth: Auth,
    /// With what kind of account.
    pub account: Account,
    /// The servers named by `--channels` for this session.
    pub opted_in: BTreeSet<Server>,
    /// The marketplaces that are verified.
    pub verified: BTreeSet<String>,
    /// The ledger of approved plugins.
    pub approved: BTreeSet<Plugin>,
}
