//! The message, before and after it is in the journal, and its parts: an agent's client limits the length of a text.

use std::collections::BTreeMap;
use std::ops::Range;
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

/// The name in [`MessageOrigin::meta`] of the icon that a program chose for its notification.
pub const ICON: &str = "icon";
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

/// The longest part, in bytes after escaping: Claude Code accepts 10,000 characters, including the element around the part and
/// perhaps a heading of the client.
///
/// Parts of stored messages are identified by number, so the rule that cuts them must not change.
pub const MAX_PART: usize = 8_000;

/// A message for an agent, or one part of it if it is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The message.
    pub message: Message,
    /// Which part, counted from 0.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl MessagePart {
    /// Creates the only part of a message.
    pub fn whole(message: Message) -> Self {
        Self { message, number: 0, of: 1 }
    }

    /// The text that the agent reads.
    pub fn text(&self) -> String {
        let text = agent_text(&self.message.draft);
        let (number, of) = (self.number + 1, self.of);
        let range = cut(&text).nth(self.number).filter(|_| of > 1);
        range.map_or_else(|| text.clone(), |range| format!("(part {number} of {of})\n{}", &text[range]))
    }
}

/// The number of parts in which an agent gets a message.
pub fn part_count(draft: &Draft) -> usize {
    cut(&agent_text(draft)).count().max(1)
}

/// The text of a message for an agent: with its headings if it is for this agent, with its kind in front if it is for the
/// lead.
fn agent_text(draft: &Draft) -> String {
    if matches!(draft.recipient, Recipient::Agent(_)) {
        let headings = [&draft.title, &draft.subtitle].into_iter().flatten();
        let lines: Vec<&str> = headings.map(String::as_str).chain([draft.body.as_str()]).collect();
        return lines.join("\n");
    }
    let kind = match draft.tag {
        Tag::Notice(_) => format!("{}: ", draft.tag.as_str()),
        Tag::Mark(_) => String::new(),
    };
    let question = draft.question_id.as_ref().map(|id| format!(" [question {id}]")).unwrap_or_default();
    format!("{kind}{}{question}", draft.body)
}

/// Cuts a text into parts of maximal length, after a line break if there is one in the second half.
fn cut(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let mut cost = 0;
        let fits = rest.char_indices().find(|(_, character)| {
            cost += escaped_length(*character);
            cost > MAX_PART
        });
        let length = fits.map_or(rest.len(), |(longest, _)| {
            let line_end = rest[..longest].rfind('\n').map(|at| at + 1);
            line_end.filter(|end| *end > longest / 2).unwrap_or(longest)
        });
        let range = start..start + length;
        start = range.end;
        (!range.is_empty()).then_some(range)
    })
}

/// The length of a character after escaping it for markup.
fn escaped_length(character: char) -> usize {
    match character {
        '"' | '\'' => 6,
        '&' => 5,
        '<' | '>' => 4,
        character => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Kind;
    use crate::message::{MessageId, QuestionId, Scope, Sender};

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

    fn message(recipient: &str, body: &str) -> Message {
        let mut draft =
            Draft::tagged(Scope::global(), Sender::new("w1").unwrap(), Tag::Notice(Kind::Complete), body);
        draft.recipient = Recipient::parse(recipient).unwrap();
        Message { seq: 1, id: MessageId::parse("m1").unwrap(), unix_ms: 0, draft, machine: None }
    }

    #[test]
    fn what_is_for_the_agent_has_its_headings_and_what_is_for_the_lead_its_kind() {
        let mut own = message("agent:a1", "look");
        own.draft.title = Some("Build".to_owned());
        assert_eq!(MessagePart::whole(own).text(), "Build\nlook");
        let mut asked = message("default", "Which?");
        asked.draft.question_id = Some(QuestionId::parse("q1").unwrap());
        assert_eq!(MessagePart::whole(asked).text(), "complete: Which? [question q1]");
    }

    #[test]
    fn a_long_message_has_parts_that_end_with_lines() {
        let line = "0123456789".repeat(10);
        let long = message("agent:a1", &vec![line.as_str(); 200].join("\n"));
        let of = part_count(&long.draft);
        assert_eq!(of, 3);
        let parts: Vec<String> =
            (0..of).map(|number| MessagePart { message: long.clone(), number, of }.text()).collect();
        assert!(parts[0].starts_with("(part 1 of 3)\n0123") && parts[0].ends_with("789\n"));
        assert!(parts[2].starts_with("(part 3 of 3)\n0123"));
        let joined: String = parts.iter().filter_map(|part| Some(part.split_once('\n')?.1)).collect();
        assert_eq!(joined, long.draft.body);
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_each_is_short(
            pieces in prop::collection::vec(prop::sample::select(vec!["word ", "\"<&>'", "\u{1f600}", "\n", "ääää"]), 0..4000),
        ) {
            let text = pieces.concat();
            let ranges: Vec<Range<usize>> = cut(&text).collect();
            prop_assert_eq!(ranges.iter().map(|range| &text[range.clone()]).collect::<String>(), text.clone());
            for range in ranges {
                prop_assert!(text[range].chars().map(escaped_length).sum::<usize>() <= MAX_PART);
            }
        }
    }
}
