//! Addresses of messages: sender, scope and recipient; and the rules for names, which are used in database columns, file names and
//! lines of output.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The repository that a message belongs to, by its id; or `global`, outside any repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scope(String);

impl Scope {
    const GLOBAL: &str = "global";

    /// The scope of everything outside a repository.
    pub fn global() -> Self {
        Self(Self::GLOBAL.to_owned())
    }

    /// The scope of a repository. Ids are eight hex digits; anything that can be part of a file name is accepted.
    pub fn new(id: &str) -> Result<Self, InvalidName> {
        validate_name("scope", id)?;
        match id.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_".contains(*c))) {
            Some(character) => Err(InvalidName::Character { what: "scope", character }),
            None => Ok(Self(id.to_owned())),
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Agent(String);

impl Agent {
    /// Checks a name and creates the value.
    pub fn new(id: &str) -> Result<Self, InvalidName> {
        validate_name("agent", id)?;
        Ok(Self(id.to_owned()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who sent a message: the person, an agent, a worker of an agent as `AGENT/WORKER`, or `system`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sender(String);

impl Sender {
    const SYSTEM: &str = "system";

    /// The sender of messages of Ringer itself.
    pub fn system() -> Self {
        Self(Self::SYSTEM.to_owned())
    }

    const PERSON: &str = "person";
    const UNVERIFIED: &str = "unverified";
    const RESERVED: [&str; 4] = [Self::PERSON, "user", Self::SYSTEM, Self::UNVERIFIED];
    /// Separates an agent and its worker.
    const WORKER: char = '/';

    /// The person.
    pub fn person() -> Self {
        Self(Self::PERSON.to_owned())
    }

    /// A process in a sandbox that left its message in the drop box: nothing proves which process that was.
    pub fn unverified() -> Self {
        Self(Self::UNVERIFIED.to_owned())
    }

    /// Checks a name and creates the value.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        validate_name("sender", name)?;
        Ok(Self(name.to_owned()))
    }

    /// The sender of messages that an agent sends in the name of one of its workers.
    pub fn worker(agent: &Self, worker: &str) -> Result<Self, InvalidName> {
        Self::new(worker)?;
        Self::new(&format!("{agent}{}{worker}", Self::WORKER))
    }

    /// Returns true for a name that no agent and no worker may have, because it could be mistaken for the person, or for a
    /// worker of another agent.
    pub fn is_reserved(name: &str) -> bool {
        let name = name.trim();
        name.contains(Self::WORKER) || Self::RESERVED.iter().any(|own| name.eq_ignore_ascii_case(own))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The agent; `None` if the system, the person or an unverified process sent it.
    pub fn agent(&self) -> Option<Agent> {
        let is_agent = ![Self::SYSTEM, Self::PERSON, Self::UNVERIFIED].contains(&self.0.as_str());
        is_agent.then(|| Agent(self.0.clone()))
    }

    /// The agent that receives a reply: for a worker, the agent that speaks for it, on its machine (`AGENT/WORKER@MACHINE`).
    pub fn reply_to(&self) -> Option<Agent> {
        let agent = self.agent()?;
        let Some((speaker, worker)) = self.0.split_once(Self::WORKER) else { return Some(agent) };
        let machine = worker.rfind('@').map_or("", |at| &worker[at..]);
        Some(Agent(format!("{speaker}{machine}")))
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whom a message is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Recipient {
    /// The lead agent of the scope, and the person.
    #[default]
    Default,
    /// The lead agent of the scope.
    Lead,
    /// The person.
    Person,
    /// Everybody.
    All,
    /// One agent.
    Agent(Agent),
}

impl Recipient {
    /// The recipients of messages that a lead agent reads.
    pub const FOR_LEAD: [&'static str; 3] = ["default", "lead", "all"];

    /// Parses what a person types after `--to`, or the recipient in the journal.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        Ok(match text {
            "default" => Self::Default,
            "lead" => Self::Lead,
            "person" => Self::Person,
            "all" => Self::All,
            _ => Self::Agent(Agent::new(text.strip_prefix("agent:").unwrap_or(text))?),
        })
    }

    /// The agent, if the recipient is one.
    pub fn agent(&self) -> Option<&Agent> {
        match self {
            Self::Agent(agent) => Some(agent),
            _ => None,
        }
    }
}

impl From<Recipient> for String {
    fn from(recipient: Recipient) -> Self {
        recipient.to_string()
    }
}

impl TryFrom<String> for Recipient {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Lead => formatter.write_str("lead"),
            Self::Person => formatter.write_str("person"),
            Self::All => formatter.write_str("all"),
            Self::Agent(agent) => write!(formatter, "agent:{}", agent.as_str()),
        }
    }
}

/// The longest name, in bytes.
const MAX_NAME: usize = 256;

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// It is empty.
    #[error("the {what} is empty")]
    Empty {
        /// The name of the checked field.
        what: &'static str,
    },
    /// It is too long.
    #[error("the {what} has {length} bytes; the limit is {most}")]
    TooLong {
        /// The name of the checked field.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// It has a character that is not allowed.
    #[error("the {what} contains {character:?}, which is not allowed")]
    Character {
        /// The name of the checked field.
        what: &'static str,
        /// The character.
        character: char,
    },
    /// It begins like Ringer's own names.
    #[error("the {what} begins with {start:?}, as Ringer's own do")]
    Reserved {
        /// The name of the checked field.
        what: &'static str,
        /// The reserved prefix.
        start: &'static str,
    },
    /// It is none of the known names.
    #[error("unknown {what} {word:?} (known: {known})")]
    Unknown {
        /// The name of the checked field.
        what: &'static str,
        /// The given name.
        word: String,
        /// The known names.
        known: String,
    },
}

/// Checks that a name is not empty, not too long and has no control characters.
pub fn validate_name(what: &'static str, text: &str) -> Result<(), InvalidName> {
    validate_text(what, text, MAX_NAME)?;
    match text.chars().find(|c| c.is_control()) {
        Some(character) => Err(InvalidName::Character { what, character }),
        None => Ok(()),
    }
}

/// Checks a text: any content but NUL, which neither a C string nor a program argument can hold.
pub fn validate_text(what: &'static str, text: &str, most: usize) -> Result<(), InvalidName> {
    if text.trim().is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if text.len() > most {
        return Err(InvalidName::TooLong { what, length: text.len(), most });
    }
    if text.contains('\0') {
        return Err(InvalidName::Character { what, character: '\0' });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_both_ways() {
        for word in ["default", "lead", "person", "all", "agent:claude-1234abcd"] {
            assert_eq!(Recipient::parse(word).unwrap().to_string(), word);
        }
        assert_eq!(Recipient::parse("worker-1").unwrap().to_string(), "agent:worker-1");
        // An agent whose name is one of the words stays an agent.
        let odd = Recipient::Agent(Agent::new("lead").unwrap());
        assert_eq!(Recipient::parse(&odd.to_string()), Ok(odd));
        assert!(Recipient::parse("").is_err() && Recipient::parse("agent:").is_err());
    }

    #[test]
    fn a_scope_can_stand_in_a_file_name() {
        assert!(Scope::new("../etc").is_err() && Scope::new("").is_err());
        assert_eq!(Scope::new("0a1b2c3d").unwrap().as_str(), "0a1b2c3d");
    }

    #[test]
    fn the_system_is_no_agent() {
        assert_eq!(Sender::system().agent(), None);
        assert_eq!(Sender::new("a1").unwrap().agent(), Agent::new("a1").ok());
        assert!(Sender::new("a\nb").is_err());
    }

    #[test]
    fn a_worker_is_named_after_its_agent_which_reads_the_replies() {
        let agent = Sender::new("claude-1").unwrap();
        let worker = Sender::worker(&agent, "w1").unwrap();
        assert_eq!(worker.as_str(), "claude-1/w1");
        let reply_to = |sender: &Sender| sender.reply_to().map(|agent| agent.as_str().to_owned());
        assert_eq!(reply_to(&worker).as_deref(), Some("claude-1"));
        assert_eq!(reply_to(&agent).as_deref(), Some("claude-1"));
        assert_eq!(reply_to(&Sender::new("claude-1/w1@box").unwrap()).as_deref(), Some("claude-1@box"));
        assert_eq!(reply_to(&Sender::person()), None);
        assert!(Sender::worker(&agent, "").is_err());
    }

    #[test]
    fn reserved_names_are_those_of_others() {
        for name in ["person", "Person", " user ", "SYSTEM", "claude-1/w"] {
            assert!(Sender::is_reserved(name), "{name}");
        }
        for name in ["people", "user-1", "systemd", "w1"] {
            assert!(!Sender::is_reserved(name), "{name}");
        }
    }
}
