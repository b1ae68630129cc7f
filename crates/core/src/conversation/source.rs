//! The source of an injection: the value of `source` in `<notification source="…">`.

use std::fmt;
use std::str::FromStr;

use crate::message::{Agent, InvalidName, validate_name};
use serde::{Deserialize, Serialize};

/// The name of an MCP server, as the person configured it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct McpServer(String);

impl McpServer {
    /// Creates a name. Fails if it is invalid.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        validate_name("server", name)?;
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for McpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for McpServer {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(&name)
    }
}

impl From<McpServer> for String {
    fn from(server: McpServer) -> Self {
        server.0
    }
}

/// The source of an event. All sources are handled in the same way.
///
/// ```
/// use ringer_core::conversation::InjectionSource;
///
/// let source: InjectionSource = "agent:claude-1234abcd".parse()?;
/// assert!(matches!(&source, InjectionSource::Agent(agent) if agent.as_str() == "claude-1234abcd"));
/// assert_eq!(source.to_string(), "agent:claude-1234abcd");
/// # Ok::<(), ringer_core::message::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum InjectionSource {
    /// The person, writing while the agent works.
    User,
    /// A file changed.
    FileWatcher,
    /// A command in the background ended.
    BackgroundTask,
    /// The editor reports a problem in the code.
    IdeDiagnostics,
    /// Another agent.
    Agent(Agent),
    /// An MCP channel.
    Channel(McpServer),
    /// A program, or a message in the person's name that cannot be verified.
    Unverified,
}

/// The sources that are one word; the other two carry a name.
const PLAIN: [(&str, InjectionSource); 5] = [
    ("user", InjectionSource::User),
    ("file_watcher", InjectionSource::FileWatcher),
    ("background_task", InjectionSource::BackgroundTask),
    ("ide_diagnostics", InjectionSource::IdeDiagnostics),
    ("unverified", InjectionSource::Unverified),
];

const KNOWN: &str =
    "user, file_watcher, background_task, ide_diagnostics, unverified, agent:<id>, channel:<server>";

impl fmt::Display for InjectionSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => formatter.write_str("user"),
            Self::FileWatcher => formatter.write_str("file_watcher"),
            Self::BackgroundTask => formatter.write_str("background_task"),
            Self::IdeDiagnostics => formatter.write_str("ide_diagnostics"),
            Self::Agent(agent) => write!(formatter, "agent:{}", agent.as_str()),
            Self::Channel(server) => write!(formatter, "channel:{server}"),
            Self::Unverified => formatter.write_str("unverified"),
        }
    }
}

impl FromStr for InjectionSource {
    type Err = InvalidName;

    fn from_str(word: &str) -> Result<Self, InvalidName> {
        if let Some((_, source)) = PLAIN.iter().find(|(name, _)| *name == word) {
            return Ok(source.clone());
        }
        if let Some(id) = word.strip_prefix("agent:") {
            return Agent::new(id).map(Self::Agent);
        }
        if let Some(name) = word.strip_prefix("channel:") {
            return McpServer::new(name).map(Self::Channel);
        }
        Err(InvalidName::Unknown { what: "source", word: word.to_owned(), known: KNOWN.to_owned() })
    }
}

impl TryFrom<String> for InjectionSource {
    type Error = InvalidName;

    fn try_from(word: String) -> Result<Self, InvalidName> {
        word.parse()
    }
}

impl From<InjectionSource> for String {
    fn from(source: InjectionSource) -> Self {
        source.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_sources_both_ways() {
        let check = |word: &str, expected: InjectionSource| {
            assert_eq!(word.parse(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), word);
            assert_eq!(serde_json::to_string(&expected).unwrap(), format!("{word:?}"));
            assert_eq!(serde_json::from_str::<InjectionSource>(&format!("{word:?}")).unwrap(), expected);
        };
        check("user", InjectionSource::User);
        check("file_watcher", InjectionSource::FileWatcher);
        check("background_task", InjectionSource::BackgroundTask);
        check("ide_diagnostics", InjectionSource::IdeDiagnostics);
        check("agent:codex-0a1b2c3d", InjectionSource::Agent(Agent::new("codex-0a1b2c3d").unwrap()));
        check("channel:slack", InjectionSource::Channel(McpServer::new("slack").unwrap()));
        check("unverified", InjectionSource::Unverified);
        // A name may look like anything; the first colon decides.
        check("agent:channel:x", InjectionSource::Agent(Agent::new("channel:x").unwrap()));
    }

    #[test]
    fn the_error_for_an_unknown_source_lists_the_known_ones() {
        let said = |word: &str| word.parse::<InjectionSource>().unwrap_err().to_string();
        assert_eq!(
            said("pigeon"),
            "unknown source \"pigeon\" (known: user, file_watcher, background_task, ide_diagnostics, \
             unverified, agent:<id>, channel:<server>)"
        );
        assert_eq!(said("agent:"), "the agent is empty");
        assert_eq!(said("channel:"), "the server is empty");
        assert_eq!(said("channel:a\nb"), "the server contains '\\n', which is not allowed");
        for word in ["", "User", "user ", "agent", "channel"] {
            assert!(word.parse::<InjectionSource>().is_err(), "{word:?}");
        }
        assert!(serde_json::from_str::<InjectionSource>("\"pigeon\"").is_err());
        assert!(serde_json::from_str::<McpServer>("\"\"").is_err());
    }

    proptest! {
        #[test]
        fn what_parses_is_written_as_it_was_read(word in "(agent:|channel:|user|file)?\\PC{0,20}") {
            if let Ok(source) = word.parse::<InjectionSource>() {
                prop_assert_eq!(source.to_string(), word);
            }
        }
    }
}
