//! The stored form of a notification.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::attention::{Cause, ReadBy, ReadReason, Trail, UndoKind};
use crate::message::{
    About, EPISODE_KEY_PREFIX, Kind, Message, MessageId, Place, QuestionId, Recipient, ShownKind, SurfaceId,
    Tag, Urgency, WorkspaceId,
};

/// The time to live of a status whose sender gives none.
const STATUS_TTL_MS: i64 = 24 * 60 * 60 * 1000;

/// A recorded notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Record {
    /// The id of its message.
    pub id: MessageId,
    /// The place that rings.
    pub place: Place,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<str>>,
    /// A second heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<Box<str>>,
    /// The text.
    pub body: Box<str>,
    /// Where it happened, in short: repository and branch, or the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// The sender.
    pub sender: Arc<str>,
    /// The repository it belongs to.
    #[serde(default)]
    pub scope: Arc<str>,
    /// The other machine it came from, by the name it had at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Arc<str>>,
    /// When it was sent, in milliseconds since 1970.
    pub unix_ms: i64,
    /// The kind of its message.
    pub kind: Kind,
    /// What caused it, in the names that clients use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Arc<str>>,
    /// The key of its message. A newer message of the same sender and key replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// The question it asks, while the question is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_question: Option<QuestionId>,
    /// When it expires, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "OptionalTime::is_none")]
    pub expires_ms: OptionalTime,
    /// True if it was read.
    pub is_read: bool,
    /// True if its cause has ended. Until then it is open.
    #[serde(default)]
    pub is_resolved: bool,
    /// What marked it read, or ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_by: Option<ReadBy>,
    /// The end of the snooze, in milliseconds since 1970. Only a notification that is read and open is snoozed.
    #[serde(default, skip_serializing_if = "OptionalTime::is_none")]
    pub snoozed_until: OptionalTime,
    /// When it escalates if it is still open, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "OptionalTime::is_none")]
    pub escalates_ms: OptionalTime,
    /// True if its pane flashes.
    pub pane_flash: bool,
    /// True if it had a popup, or will have one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_popup: bool,
    /// Its history.
    #[serde(default)]
    pub trail: Trail,
}

impl Record {
    /// Returns true if the person may call the notification by this name: what lists show of where it came from.
    pub fn has_name(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let machine = self.machine.as_deref();
        let there = self.label.as_deref().zip(machine).map(|(label, machine)| format!("{label}@{machine}"));
        let names = [self.label.as_deref(), Some(&*self.sender), there.as_deref(), machine];
        names.into_iter().flatten().any(is_it)
    }

    /// Creates the record of a message that no hub has processed: unread, in its repository's workspace. `None` for a mark,
    /// and for a message that is not for the person.
    pub fn of(message: &Message) -> Option<Self> {
        let draft = &message.draft;
        let Tag::Notice(kind) = draft.tag else { return None };
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            return None;
        }
        let place = match (&message.machine, &draft.origin.workspace) {
            (Some(_), Some(workspace)) => Place {
                workspace: WorkspaceId::new(workspace),
                surface: draft.origin.surface.as_deref().map(SurfaceId::new),
            },
            _ => Place::own_workspace(draft.scope.as_str()),
        };
        let text = draft.for_person();
        let record = Self::from_message(message, place, kind, text.body);
        Some(Self {
            title: text.title.map(Into::into),
            subtitle: draft.subtitle.as_deref().map(Into::into),
            ..record
        })
    }

    /// Creates an unread notification of a message at a place, with this text and no headings.
    pub(crate) fn from_message(message: &Message, place: Place, kind: Kind, body: String) -> Self {
        let draft = &message.draft;
        let record = Self::new(message.id.clone(), place, kind, body, message.unix_ms);
        let ttl_ms = draft.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let ttl_ms = ttl_ms.or((kind == Kind::Status).then_some(STATUS_TTL_MS));
        Self {
            sender: draft.sender.as_str().into(),
            scope: draft.scope.as_str().into(),
            machine: message.machine.as_deref().map(Arc::from),
            label: draft.about.as_ref().and_then(About::label).map(Arc::from),
            category: draft.category.as_deref().map(Arc::from),
            key: draft.key.as_deref().map(Arc::from),
            open_question: draft.question_id.clone().filter(|_| kind == Kind::Question),
            expires_ms: ttl_ms.map(|ttl| message.unix_ms.saturating_add(ttl)).into(),
            ..record
        }
    }

    /// Returns true if it reports an episode of an agent. Such a notification ends when the agent's session ends its cause.
    pub fn is_of_session(&self) -> bool {
        self.key.as_deref().is_some_and(|key| key.starts_with(EPISODE_KEY_PREFIX))
    }

    /// Returns true if an agent cannot continue without a person: a permission, an answer, a login, an instruction.
    pub fn is_prompt(&self) -> bool {
        self.shown_kind().is_prompt()
    }

    /// Returns true if an agent waits for an answer: the notification is a prompt and open, snoozed or not.
    pub fn waits_for_answer(&self) -> bool {
        self.is_prompt() && !self.is_resolved
    }

    /// Returns true for an open question or permission, which no newer notification supersedes.
    pub fn stays_unread(&self) -> bool {
        self.shown_kind().stays() && !self.is_resolved
    }

    /// Returns true if it needs the person now: it is open, of a kind that waits for them, and not snoozed.
    pub fn needs_person(&self) -> bool {
        !self.is_resolved && self.snoozed_until.is_none() && self.shown_kind().urgency() == Urgency::High
    }

    /// Returns true if reading it for this reason also resolves it. A prompt stays open until the agent has its answer.
    pub(crate) fn ends_when_read(&self, by: &ReadReason) -> bool {
        match by {
            ReadReason::Answered | ReadReason::ClosedUnanswered => true,
            _ if !self.is_prompt() => true,
            _ if self.is_of_session() || self.open_question.is_some() => false,
            ReadReason::Looked => false,
            _ => true,
        }
    }

    /// Adds a step to the trail and updates `read_by`.
    pub(crate) fn add_step(&mut self, unix_ms: i64, cause: Cause) {
        self.read_by = match &cause {
            // The answer ends it as soon as the agent goes on.
            Cause::Resolved { .. } if self.read_by == Some(ReadBy::Answer) => self.read_by,
            Cause::Answered { .. } => Some(ReadBy::Answer),
            Cause::MarkedRead { by } => Some(by.into()),
            Cause::Resolved { by } => Some((*by).into()),
            Cause::InView => Some(ReadBy::Looking),
            Cause::MarkedUnread | Cause::SnoozeEnded | Cause::TakenBack { kind: UndoKind::Read } => None,
            _ => self.read_by,
        };
        self.trail.add(unix_ms, cause);
    }

    /// The kind that people see.
    pub fn shown_kind(&self) -> ShownKind {
        ShownKind::of(self.kind, self.category.as_deref())
    }

    /// The order of notifications that need a person: by urgency, then this machine before others, then the oldest first.
    pub fn by_urgency(&self, other: &Self) -> Ordering {
        let key = |record: &Self| {
            (Reverse(record.shown_kind().urgency()), record.machine.is_some(), record.unix_ms)
        };
        key(self).cmp(&key(other)).then_with(|| self.id.cmp(&other.id))
    }

    /// Returns the most urgent unread record.
    pub fn most_urgent_unread<'a>(records: impl Iterator<Item = &'a Self>) -> Option<&'a Self> {
        records.filter(|record| !record.is_read).min_by(|one, two| one.by_urgency(two))
    }

    /// Creates an unread notification with only a text.
    pub fn new(id: MessageId, place: Place, kind: Kind, body: impl Into<Box<str>>, unix_ms: i64) -> Self {
        Self {
            id,
            place,
            title: None,
            subtitle: None,
            body: body.into(),
            label: None,
            sender: "system".into(),
            scope: "".into(),
            machine: None,
            unix_ms,
            kind,
            category: None,
            key: None,
            open_question: None,
            expires_ms: OptionalTime::NONE,
            is_read: false,
            is_resolved: false,
            read_by: None,
            snoozed_until: OptionalTime::NONE,
            escalates_ms: OptionalTime::NONE,
            pane_flash: true,
            had_popup: false,
            trail: Trail::default(),
        }
    }
}

/// An optional time in milliseconds since 1970, in 8 bytes. An `Option` would take twice as many, and there may be 100,000
/// records with three of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalTime(i64);

impl OptionalTime {
    /// None.
    pub const NONE: Self = Self(i64::MIN);

    /// The time, if there is one.
    pub fn get(self) -> Option<i64> {
        (self != Self::NONE).then_some(self.0)
    }

    /// Returns true if there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl From<Option<i64>> for OptionalTime {
    fn from(time: Option<i64>) -> Self {
        time.map_or(Self::NONE, Self)
    }
}

impl Default for OptionalTime {
    fn default() -> Self {
        Self::NONE
    }
}

impl Serialize for OptionalTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OptionalTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}

/// The rows of a list, newest first: this machine's, then those of other machines. If there are more of both than fit, each
/// gets half, so that neither hides the other.
pub fn local_first<'a>(
    local: impl Iterator<Item = &'a Record>,
    elsewhere: impl Iterator<Item = &'a Record>,
    most: usize,
) -> impl Iterator<Item = &'a Record> {
    let (mut local, mut elsewhere): (Vec<_>, Vec<_>) =
        (local.take(most).collect(), elsewhere.take(most).collect());
    local.truncate(most - elsewhere.len().min(most / 2));
    elsewhere.truncate(most - local.len());
    local.into_iter().chain(elsewhere)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{IDLE_PROMPT, Kind, MessageId, PERMISSION_PROMPT, Place, WorkspaceId};

    fn record(unix_ms: i64, kind: Kind, category: Option<&str>) -> Record {
        let id = MessageId::new(u64::try_from(unix_ms).unwrap(), [0; 10]);
        let record = Record::new(id, Place::workspace(WorkspaceId::new("w")), kind, "x", unix_ms);
        Record { category: category.map(Arc::from), ..record }
    }

    #[test]
    fn the_most_urgent_comes_first_and_then_the_oldest() {
        let mut records = [
            record(1, Kind::Status, None),
            record(2, Kind::Waiting, Some(IDLE_PROMPT)),
            record(3, Kind::Complete, None),
            record(5, Kind::Waiting, Some(PERMISSION_PROMPT)),
            record(4, Kind::Error, None),
        ];
        records.sort_by(Record::by_urgency);
        assert_eq!(records.each_ref().map(|record| record.unix_ms), [4, 5, 3, 1, 2]);
        assert_eq!(records.each_ref().map(Record::needs_person), [true, true, false, false, false]);
        records[0].is_resolved = true;
        assert!(!records[0].needs_person());
    }

    #[test]
    fn what_is_of_this_machine_comes_before_the_same_of_another_one() {
        let of_box = |record: Record| Record { machine: Some("box".into()), ..record };
        let mut records = [
            of_box(record(1, Kind::Waiting, Some(PERMISSION_PROMPT))),
            record(9, Kind::Question, None),
            record(3, Kind::Complete, None),
            of_box(record(2, Kind::Complete, None)),
        ];
        records.sort_by(Record::by_urgency);
        assert_eq!(records.each_ref().map(|record| record.unix_ms), [9, 1, 3, 2]);
        let most_urgent = Record::most_urgent_unread(records.iter()).unwrap();
        assert_eq!(most_urgent.unix_ms, 9);
    }

    #[test]
    fn it_is_saved_as_an_option_is() {
        for time in [None, Some(0), Some(-1), Some(1_900_000_000_000)] {
            let saved = serde_json::to_string(&time).unwrap();
            let read: OptionalTime = serde_json::from_str(&saved).unwrap();
            assert_eq!((read.get(), serde_json::to_string(&read).unwrap()), (time, saved));
        }
    }

    fn records(count: usize) -> Vec<Record> {
        let id = MessageId::new(0, [0; 10]);
        let record = Record::new(id, Place::workspace(WorkspaceId::new("w")), Kind::Status, "x", 0);
        vec![record; count]
    }

    proptest! {
        #[test]
        fn neither_hides_the_other(local in 0usize..40, elsewhere in 0usize..40, most in 0usize..40) {
            let (own, others) = (records(local), records(elsewhere));
            let others: Vec<Record> =
                others.into_iter().map(|record| Record { machine: Some("box".into()), ..record }).collect();
            let rows: Vec<&Record> = local_first(own.iter(), others.iter(), most).collect();
            prop_assert_eq!(rows.len(), most.min(local + elsewhere));
            prop_assert!(rows.is_sorted_by_key(|record| record.machine.is_some()));
            let listed = rows.iter().filter(|record| record.machine.is_none()).count();
            prop_assert!(listed >= local.min(most - most / 2));
            prop_assert!(rows.len() - listed >= elsewhere.min(most / 2));
        }
    }
}
