//! Marks: reading, clearing and answering are messages too, so they work while no consumer runs, and reach every machine.
//! Consumers apply them and never show them.

use std::fmt;

use crate::attention::{OptionalTime, ReadReason, Record};
use crate::message::{
    Mark, Message, MessageId, Place, SurfaceId, Tag, WorkspaceId, is_about_impostors, is_ended_by_key,
};

/// The target of a mark. It is written as the key of the message that carries the mark.
///
/// ```
/// use ringer_core::attention::MarkTarget;
/// use ringer_core::message::{Place, WorkspaceId};
///
/// let target = MarkTarget::Place(Place::workspace(WorkspaceId::new("repo:0a1b2c3d")));
/// assert_eq!(target.to_string(), "place:13:repo:0a1b2c3d");
/// assert_eq!(MarkTarget::parse("place:13:repo:0a1b2c3d"), Some(target));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkTarget {
    /// One message.
    Message(MessageId),
    /// Everything at a place.
    Place(Place),
    /// Everything.
    All,
    /// Everything that is read and resolved.
    AllRead,
    /// The messages with this key: the reports of an agent's episode, or of a program that gave its terminal an id.
    Key(String),
}

impl MarkTarget {
    /// Parses a key. `None` if no version writes such a key.
    pub fn parse(key: &str) -> Option<Self> {
        match key {
            "all" => return Some(Self::All),
            "all-read" => return Some(Self::AllRead),
            key if is_ended_by_key(key) => return Some(Self::Key(key.to_owned())),
            _ => {}
        }
        let Some(place) = key.strip_prefix("place:") else {
            return MessageId::parse(key).ok().map(Self::Message);
        };
        // Ids are opaque and may contain any separator, so the length of the first one is written before it.
        let (length, ids) = place.split_once(':')?;
        let (workspace, surface) = ids.split_at_checked(length.parse().ok()?)?;
        let surface = Some(surface).filter(|surface| !surface.is_empty()).map(SurfaceId::new);
        Some(Self::Place(Place { workspace: WorkspaceId::new(workspace), surface }))
    }
}

/// Applies a mark, with its text, to saved notifications while no hub runs. The engine applies marks in memory.
pub fn apply_mark(mark: Mark, target: &MarkTarget, text: &str, records: &mut Vec<Record>) {
    apply(mark, target, text, |_| true, records);
}

fn apply(
    mark: Mark,
    target: &MarkTarget,
    text: &str,
    may_change: impl Fn(&Record) -> bool,
    records: &mut Vec<Record>,
) {
    // Only a mark that names such a warning may hide it, as in the engine.
    let is_warning = |record: &Record| !record.is_read && is_about_impostors(record.category.as_deref());
    let is_target = |record: &Record| match target {
        MarkTarget::Message(id) => record.id == *id,
        MarkTarget::Place(place) => place.covers(&record.place) && !is_warning(record),
        MarkTarget::All => !is_warning(record),
        MarkTarget::AllRead => record.is_read && record.is_resolved,
        MarkTarget::Key(key) => record.key.as_deref() == Some(key),
    };
    let meant = |record: &Record| is_target(record) && may_change(record);
    match mark {
        Mark::Clear => records.retain(|record| !meant(record)),
        Mark::Read | Mark::Unread => {
            for record in records.iter_mut().filter(|record| meant(record)) {
                record.is_read = mark == Mark::Read;
                record.is_resolved |= record.is_read && record.ends_when_read(&ReadReason::Person);
                if !record.is_read || record.is_resolved {
                    record.snoozed_until = OptionalTime::NONE;
                }
            }
        }
        Mark::Resolve => {
            for record in records.iter_mut().filter(|record| meant(record)) {
                (record.is_read, record.is_resolved) = (true, true);
                record.snoozed_until = OptionalTime::NONE;
            }
        }
        Mark::Snooze => {
            let Some(until_ms) = snooze_end(text) else { return };
            for record in records.iter_mut().filter(|record| meant(record) && !record.is_resolved) {
                (record.is_read, record.snoozed_until) = (true, Some(until_ms).into());
            }
        }
        // Only the engine knows what a command changed. A decision ends nothing: the agent that takes it does. A mute is about
        // what arrives later.
        Mark::Answer | Mark::Undo | Mark::Decision | Mark::Mute | Mark::Unmute => {}
    }
}

/// Returns true if a mark of another machine may change a notification. A notification of this machine that waits for an
/// answer is read, snoozed, cleared or ended only by what happens here: otherwise somebody who broke into the other machine
/// could hide it. Which notifications of other machines the mark may change is checked when it comes in.
pub fn is_open_to_other_machines(record: &Record) -> bool {
    record.machine.is_some() || !record.waits_for_answer()
}

/// Applies a message to saved notifications, if it is a mark.
pub fn apply_mark_message(message: &Message, records: &mut Vec<Record>) {
    let Tag::Mark(mark) = message.draft.tag else { return };
    let may_change = |record: &Record| message.machine.is_none() || is_open_to_other_machines(record);
    if let (Mark::Answer, Some(question)) = (mark, &message.draft.question_id) {
        let asks = |record: &Record| record.open_question.as_ref() == Some(question);
        for record in records.iter_mut().filter(|record| asks(record) && may_change(record)) {
            (record.is_read, record.is_resolved) = (true, true);
            (record.open_question, record.snoozed_until) = (None, OptionalTime::NONE);
        }
    }
    if let Some(target) = message.draft.key.as_deref().and_then(MarkTarget::parse) {
        apply(mark, &target, &message.draft.body, may_change, records);
    }
}

/// Parses the end of a snooze from the text of a mark.
pub(crate) fn snooze_end(text: &str) -> Option<i64> {
    text.parse().ok().filter(|until_ms| *until_ms > 0)
}

impl fmt::Display for MarkTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => formatter.write_str(id.as_str()),
            Self::All => formatter.write_str("all"),
            Self::AllRead => formatter.write_str("all-read"),
            Self::Key(key) => formatter.write_str(key),
            Self::Place(place) => {
                let workspace = place.workspace.as_str();
                write!(formatter, "place:{}:{workspace}", workspace.len())?;
                place.surface.as_ref().map_or(Ok(()), |surface| formatter.write_str(surface.as_str()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Kind, REFUSED};

    #[test]
    fn what_no_version_wrote_is_no_target() {
        for key in ["place:", "place:x:abc", "place:99:abc", "place:1:é", ""] {
            assert_eq!(MarkTarget::parse(key), None, "{key:?}");
        }
    }

    #[test]
    fn a_mark_on_everything_leaves_an_unread_warning() {
        let record = |number, category: Option<&str>| {
            let id = MessageId::new(number, [0; 10]);
            let place = Place::workspace(WorkspaceId::new("w"));
            Record { category: category.map(Into::into), ..Record::new(id, place, Kind::Error, "x", 0) }
        };
        let mut records = vec![record(1, None), record(2, Some(REFUSED))];
        let warning = MarkTarget::Message(records[1].id.clone());
        let place = MarkTarget::Place(records[1].place.clone());
        for (mark, target) in
            [(Mark::Read, &MarkTarget::All), (Mark::Clear, &place), (Mark::Clear, &MarkTarget::All)]
        {
            apply_mark(mark, target, "", &mut records);
            assert!(records.iter().any(|record| !record.is_read), "{mark:?} {target:?}");
        }
        assert_eq!(records.len(), 1);
        apply_mark(Mark::Clear, &warning, "", &mut records);
        assert_eq!(records, []);
    }

    proptest! {
        #[test]
        fn keys_both_ways(workspace in "\\PC{1,20}", surface in prop::option::of("\\PC{1,20}")) {
            let surface = surface.as_deref().map(SurfaceId::new);
            let place = Place { workspace: WorkspaceId::new(&workspace), surface };
            let target = MarkTarget::Place(place);
            prop_assert_eq!(MarkTarget::parse(&target.to_string()), Some(target));
        }

        #[test]
        fn any_key_is_read_or_refused(key in ".*") {
            let _ = MarkTarget::parse(&key);
        }
    }
}
