//! The wire format of messages between machines.

use std::borrow::Cow;

use ringer_core::Message;
use ringer_core::agent::PromptContent;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{About, MAX_BODY, Mark, MarkReach, QuestionId, Recipient, Tag};
use ringer_term::mask_secrets;
use serde::{Deserialize, Serialize};

use crate::machine::MachineName;

/// Optional parts are left out of a message beyond this size as JSON: two messages always fit into a frame.
const MAX_ENCODED: usize = 480 * 1024;
/// The longest heading that a journal accepts.
const MAX_HEADING: usize = MAX_BODY / 16;

/// A message on the wire. Every field is untrusted, and is checked before it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireMessage {
    /// The number in the journal of its machine.
    pub seq: i64,
    /// The id of the message.
    pub id: String,
    /// When it was sent, by the clock of its machine.
    pub unix_ms: i64,
    /// The name of its tag.
    pub tag: String,
    /// The repository, by its id on that machine.
    pub scope: String,
    /// The identity of that repository, which is the same on every machine. Only set if a lead agent may read the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The sender.
    pub sender: String,
    /// The recipient.
    pub recipient: String,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The subtitle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// The text.
    pub body: String,
    /// The category, which names the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The question that it asks or refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_id: Option<String>,
    /// The key, or the target of a mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long it is worth showing, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The surface of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The parts of the text, such as names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// The prompt, if it fits the buttons of a popup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptContent>,
}

impl WireMessage {
    /// Converts a message of this machine for another one. Returns `None` if it does not concern that machine: it came from
    /// another one, or its recipient is an agent elsewhere, or it is a mark that only this machine keeps.
    pub fn of(message: &Message, to: &MachineName) -> Option<Self> {
        let draft = &message.draft;
        if message.machine.is_some() {
            return None;
        }
        let recipient = match (draft.tag, &draft.recipient) {
            (Tag::Mark(mark), _) if !is_sent(mark, draft.key.as_deref()) => return None,
            (Tag::Notice(_), Recipient::Agent(agent)) => {
                let there = agent.as_str().strip_suffix(to.as_str())?.strip_suffix('@')?;
                format!("agent:{there}")
            }
            (_, recipient) => recipient.to_string(),
        };
        let mut wire = Self {
            seq: message.seq,
            id: message.id.to_string(),
            unix_ms: message.unix_ms,
            tag: draft.tag.as_str().to_owned(),
            scope: draft.scope.as_str().to_owned(),
            repository: None,
            sender: draft.sender.as_str().to_owned(),
            recipient,
            title: draft.title.clone(),
            subtitle: draft.subtitle.clone(),
            body: draft.body.clone(),
            category: draft.category.clone(),
            question_id: draft.question_id.as_ref().map(|id: &QuestionId| id.as_str().to_owned()),
            key: draft.key.clone(),
            ttl_ms: draft.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            surface: draft.origin.surface.clone(),
            about: draft.about.clone(),
            prompt: None,
        };
        if matches!((draft.tag, &draft.recipient), (Tag::Notice(_), recipient) if recipient.agent().is_none())
        {
            wire.mask_secrets();
        }
        if wire.encoded_bytes() > MAX_ENCODED {
            // A client's texts about its agent have no limit of their own, and headings have a small one.
            wire.about = None;
            (wire.title, wire.subtitle) = (None, None);
        }
        Some(wire)
    }

    /// Masks secrets that a screen of the other machine would show. Messages for an agent there stay unchanged.
    fn mask_secrets(&mut self) {
        let mask = |text: &mut String, most: usize| {
            if let Cow::Owned(mut masked) = mask_secrets(text) {
                // A secret may be shorter than its replacement.
                masked.truncate(masked.floor_char_boundary(most));
                *text = masked;
            }
        };
        mask(&mut self.body, MAX_BODY);
        for heading in [&mut self.title, &mut self.subtitle].into_iter().flatten() {
            mask(heading, MAX_HEADING);
        }
        if let Some(detail) = self.about.as_mut().and_then(|about| about.detail.as_mut()) {
            mask(detail, usize::MAX);
        }
    }

    /// Sets the identity of the repository, unless the message would become too long.
    pub(crate) fn set_repository(&mut self, repository: &str) {
        self.repository = Some(repository.to_owned());
        if self.encoded_bytes() > MAX_ENCODED {
            self.repository = None;
        }
    }

    /// Returns the length as JSON.
    pub fn encoded_bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |encoded| encoded.len())
    }
}

/// Returns true if a mark of this machine is sent to others: the person's marks on one notification, and agents' marks on their
/// own messages.
fn is_sent(mark: Mark, key: Option<&str>) -> bool {
    match mark.reach() {
        MarkReach::ThisMachine => false,
        MarkReach::PersonsMachines => {
            matches!(key.and_then(MarkTarget::parse), Some(MarkTarget::Message(_)))
        }
        MarkReach::Everywhere => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
    use ringer_journal::{Home, IdSource, Journal};

    fn message(recipient: &str) -> Message {
        let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "hello").unwrap();
        draft.recipient = Recipient::parse(recipient).unwrap();
        Message { seq: 3, id: MessageId::new(5, [1; 10]), unix_ms: 5, draft, machine: None }
    }

    fn sent(message: &Message) -> Option<String> {
        WireMessage::of(message, &MachineName::parse("box").unwrap()).map(|wire| wire.recipient)
    }

    #[test]
    fn only_local_messages_leave_and_only_for_their_recipient() {
        for recipient in ["default", "person", "lead", "all"] {
            assert_eq!(sent(&message(recipient)).as_deref(), Some(recipient));
        }
        assert_eq!(sent(&message("agent:worker-1")), None, "an agent of this machine");
        assert_eq!(sent(&message("agent:worker-1@other")), None, "an agent of another machine");
        assert_eq!(sent(&message("agent:worker-1@box")).as_deref(), Some("agent:worker-1"));
        let imported = Message { machine: Some("other".to_owned()), ..message("person") };
        assert_eq!(sent(&imported), None, "no transit");
    }

    #[test]
    fn secrets_are_masked_unless_an_agent_is_the_recipient() {
        let wire = |recipient: &str| {
            let mut message = message(recipient);
            message.draft.body = "API_KEY=0123456789 make".to_owned();
            message.draft.title = Some("Bearer 0123456789abcdef".to_owned());
            WireMessage::of(&message, &MachineName::parse("box").unwrap()).unwrap()
        };
        for recipient in ["default", "person", "all"] {
            let wire = wire(recipient);
            assert_eq!(wire.body, "API_KEY=[masked] make");
            assert_eq!(wire.title.as_deref(), Some("Bearer [masked]"));
        }
        assert_eq!(wire("agent:worker-1@box").body, "API_KEY=0123456789 make");
        let mut long = message("person");
        long.draft.body = "TOKEN=123456 ".repeat(MAX_BODY / 13);
        let wire = WireMessage::of(&long, &MachineName::parse("box").unwrap()).unwrap();
        assert!(wire.body.len() <= MAX_BODY && !wire.body.contains("123456"));
    }

    #[test]
    fn mutes_and_bulk_marks_are_not_sent() {
        let mut mute = message("person");
        mute.draft.tag = Tag::Mark(Mark::Mute);
        assert_eq!(sent(&mute), None);
        mute.draft.tag = Tag::Mark(Mark::Read);
        for (key, is_sent) in
            [(mute.id.as_str(), true), ("all", false), ("all-read", false), ("place:1:w", false)]
        {
            let marked = Draft { key: Some(key.to_owned()), ..mute.draft.clone() };
            assert_eq!(sent(&Message { draft: marked, ..mute.clone() }).is_some(), is_sent, "{key}");
        }
    }

    #[test]
    fn one_message_always_fits_into_a_frame() {
        let mut long = message("person");
        long.draft.body = "\u{1}".repeat(MAX_BODY);
        long.draft.about = Some(About { detail: Some("\u{1}".repeat(1 << 20)), ..About::default() });
        let wire = WireMessage::of(&long, &MachineName::parse("box").unwrap()).unwrap();
        assert!(wire.encoded_bytes() <= MAX_ENCODED, "{}", wire.encoded_bytes());
        assert_eq!(wire.body, long.draft.body);
        let mut wire = wire;
        wire.set_repository("host/repo");
        assert_eq!(wire.repository.as_deref(), Some("host/repo"));
        wire.set_repository(&"x".repeat(MAX_ENCODED - wire.encoded_bytes() + 10));
        assert_eq!(wire.repository, None);
        assert!(wire.encoded_bytes() <= MAX_ENCODED);
    }

    /// The journal counts waiting messages by the same rule.
    #[test]
    fn the_waiting_count_matches_the_sent_messages() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&Home::new(directory.path())).unwrap();
        let id = MessageId::new(5, [1; 10]);
        let marks = [
            Mark::Read,
            Mark::Unread,
            Mark::Clear,
            Mark::Answer,
            Mark::Resolve,
            Mark::Undo,
            Mark::Decision,
            Mark::Snooze,
            Mark::Mute,
            Mark::Unmute,
        ];
        let tags = marks.map(Tag::Mark).into_iter().chain([Tag::Notice(Kind::Status)]);
        let keys = ["all", "all-read", "place:1:ws", "episode:x", id.as_str()];
        let recipients =
            ["default", "person", "lead", "all", "agent:a", "agent:a@box", "agent:a@bigbox", "agent:a@vm"];
        let cases =
            tags.flat_map(|tag| keys.into_iter().flat_map(move |key| recipients.map(|to| (tag, key, to))));
        let mut sent = 0;
        for (number, (tag, key, to)) in cases.enumerate() {
            let mut message = message(to);
            (message.draft.tag, message.draft.key) = (tag, Some(key.to_owned()));
            let stamp = IdSource { unix_ms: i64::try_from(number).unwrap(), ..IdSource::now() };
            journal.append(&message.draft, &stamp).unwrap();
            sent += i64::from(self::sent(&message).is_some());
            assert_eq!(journal.own_count_for("box", 0, i64::MAX).unwrap(), sent, "{tag:?} {key} {to}");
        }
        assert!(sent > 0);
    }
}
