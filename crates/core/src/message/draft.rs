//! The message, before and after it is in the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::{
    About, InvalidName, Kind, MessageId, PersonText, QuestionId, Recipient, Scope, Sender, Tag,
    validate_name, validate_text,
};

/// The longest body, in bytes. A longer text belongs in a file that the message names.
pub const MAX_BODY: usize = 64 * 1024;

/// Prefix of the key of a message that reports an agent's episode. No other message may have such a key.
pub const EPISODE_KEY_PREFIX: &str = "episode:";
/// Prefix of the key of a message that a program sent to its terminal with an id, by which it may withdraw the message.
pub const TERMINAL_KEY_PREFIX: &str = "terminal:";

/// Returns true if messages with this key may be ended by the key alone: it names an agent or a terminal, and is not only
/// unique for its sender.
pub fn is_ended_by_key(key: &str) -> bool {
    key.starts_with(EPISODE_KEY_PREFIX) || key.starts_with(TERMINAL_KEY_PREFIX)
}

/// The origin of a message, as far as its sender knew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageOrigin {
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its terminal device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tty: Option<String>,
    /// Its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The terminal program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// The pane of a multiplexer (`$TMUX_PANE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// The surface (`$RINGER_SURFACE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The workspace, if the sender knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What an MCP channel reports apart from the text: `chat_id`, `user`, …
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// A message that is not in the journal yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The kind of notification, or the mark.
    pub tag: Tag,
    /// The repository it belongs to.
    pub scope: Scope,
    /// The sender.
    pub sender: Sender,
    /// The recipient.
    pub recipient: Recipient,
    /// A heading.
    pub title: Option<String>,
    /// A second heading.
    pub subtitle: Option<String>,
    /// The text.
    pub body: String,
    /// What caused it, in the names that clients use: `idle_prompt`, `permission_prompt`, …
    pub category: Option<String>,
    /// The question it asks, or is about.
    pub question_id: Option<QuestionId>,
    /// Shown messages with the same key replace each other.
    pub key: Option<String>,
    /// The time to live: how long it is worth showing.
    pub ttl: Option<Duration>,
    /// Its origin.
    pub origin: MessageOrigin,
    /// Its parts, if an agent's client reported it. The body is the sentence for a lead agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// The name in [`MessageOrigin::meta`] of the evidence that the person made a decision.
pub const EVIDENCE: &str = "evidence";

impl Draft {
    /// Creates a notification with only a body, for the scope's lead and the person.
    pub fn new(scope: Scope, sender: Sender, kind: Kind, body: &str) -> Result<Self, InvalidName> {
        validate_text("message", body, MAX_BODY)?;
        Ok(Self::tagged(scope, sender, Tag::Notice(kind), body))
    }

    /// Creates a message with any tag; marks may have an empty body.
    pub fn tagged(scope: Scope, sender: Sender, tag: Tag, body: &str) -> Self {
        Self {
            tag,
            scope,
            sender,
            recipient: Recipient::Default,
            title: None,
            subtitle: None,
            body: body.to_owned(),
            category: None,
            question_id: None,
            key: None,
            ttl: None,
            origin: MessageOrigin::default(),
            about: None,
        }
    }

    /// The text for a person.
    pub fn for_person(&self) -> PersonText {
        match (&self.about, self.tag) {
            (Some(about), Tag::Notice(kind)) => about.for_person(kind, self.category.as_deref()),
            _ => PersonText { title: self.title.clone(), body: self.body.clone() },
        }
    }

    /// Checks the texts other than the body.
    pub fn check(&self) -> Result<(), InvalidName> {
        for (what, text) in [("title", &self.title), ("subtitle", &self.subtitle)] {
            if let Some(text) = text {
                validate_text(what, text, MAX_BODY / 16)?;
            }
        }
        if matches!(self.tag, Tag::Notice(_))
            && self.key.as_deref().is_some_and(|key| key.starts_with(EPISODE_KEY_PREFIX))
        {
            return Err(InvalidName::Reserved { what: "key", start: EPISODE_KEY_PREFIX });
        }
        for (what, word) in [("key", &self.key), ("category", &self.category)] {
            if let Some(word) = word {
                validate_name(what, word)?;
            }
        }
        Ok(())
    }
}

/// A message in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its sequence number in the journal.
    pub seq: i64,
    /// Its id.
    pub id: MessageId,
    /// When it was sent, in milliseconds since 1970.
    pub unix_ms: i64,
    /// The content.
    pub draft: Draft,
    /// The machine it was sent on, if it is another one.
    pub machine: Option<String>,
}

impl Message {
    /// Returns true if the time to live is not over.
    pub fn is_current(&self, unix_ms: i64) -> bool {
        match self.draft.ttl {
            Some(ttl) => {
                unix_ms.saturating_sub(self.unix_ms) < i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(body: &str) -> Result<Draft, InvalidName> {
        Draft::new(Scope::global(), Sender::system(), Kind::Status, body)
    }

    #[test]
    fn a_body_has_something_in_it_and_an_end() {
        assert!(draft("\x1b[31m any \u{202e} text\n").is_ok(), "stored as sent");
        assert!(draft(&"x".repeat(MAX_BODY)).is_ok());
        assert_eq!(
            draft(&"x".repeat(MAX_BODY + 1)).unwrap_err().to_string(),
            "the message has 65537 bytes; the limit is 65536"
        );
        assert!(draft(" \n").is_err() && draft("a\0b").is_err());
    }

    #[test]
    fn headings_are_checked_too() {
        let mut draft = draft("x").unwrap();
        draft.title = Some("a\0b".to_owned());
        assert!(draft.check().is_err());
        draft.title = Some("fine".to_owned());
        draft.key = Some("two\nlines".to_owned());
        assert!(draft.check().is_err());
        draft.key = Some("episode:a:1".to_owned());
        let error = draft.check().unwrap_err().to_string();
        assert_eq!(error, "the key begins with \"episode:\", as Ringer's own do");
    }

    #[test]
    fn a_message_outlives_its_worth() {
        let mut draft = draft("x").unwrap();
        draft.ttl = Some(Duration::from_secs(1));
        let id = MessageId::new(0, [0; 10]);
        let message = Message { seq: 1, id, unix_ms: 5_000, draft, machine: None };
        assert!(message.is_current(5_999) && !message.is_current(6_000));
        assert!(message.is_current(i64::MIN), "a clock that went back expires nothing");
    }
}
