//! The digest: one line about what arrived while the person was away.

use std::cmp::Reverse;
use std::fmt;

use crate::attention::Record;
use crate::message::{MessageId, ShownKind};

/// The heading of the digest's popup.
pub const DIGEST_TITLE: &str = "While you were away";

/// Counts of the notifications that arrived and still matter, by kind.
///
/// ```
/// use ringer_core::{Kind, MessageId};
/// use ringer_core::attention::{Digest, Record};
/// use ringer_core::message::{Place, WorkspaceId};
///
/// let record = |number, kind| {
///     Record::new(MessageId::new(number, [0; 10]), Place::workspace(WorkspaceId::new("w")), kind, "x", 0)
/// };
/// let records = [record(1, Kind::Complete), record(2, Kind::Question), record(3, Kind::Complete)];
/// assert_eq!(Digest::of(&records).to_string(), "1 asks, 2 done");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Most urgent first.
    counts: Vec<(ShownKind, usize)>,
}

impl Digest {
    /// Returns true if a notification arrived since this moment and is unread or needs the person.
    pub fn includes(record: &Record, since_ms: i64) -> bool {
        record.unix_ms >= since_ms && (!record.is_read || record.needs_person())
    }

    /// Counts notifications.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut counts: Vec<(ShownKind, usize)> = Vec::new();
        for kind in records.into_iter().map(Record::shown_kind) {
            match counts.iter_mut().find(|(own, _)| *own == kind) {
                Some((_, count)) => *count += 1,
                None => counts.push((kind, 1)),
            }
        }
        let place = |kind: ShownKind| ORDER.iter().position(|own| *own == kind);
        counts.sort_by_key(|(kind, _)| (Reverse(kind.urgency()), place(*kind)));
        Self { counts }
    }

    /// The counts by kind, the most urgent first.
    pub fn counts(&self) -> &[(ShownKind, usize)] {
        &self.counts
    }

    /// Returns true if no notification was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The order of kinds of the same urgency.
const ORDER: [ShownKind; 8] = [
    ShownKind::Question,
    ShownKind::Permission,
    ShownKind::Waiting,
    ShownKind::Stuck,
    ShownKind::Error,
    ShownKind::Complete,
    ShownKind::Idle,
    ShownKind::Status,
];

/// The words for one and for several notifications of a kind.
fn words(kind: ShownKind) -> (&'static str, &'static str) {
    match kind {
        ShownKind::Question => ("asks", "ask"),
        ShownKind::Permission => ("needs permission", "need permission"),
        ShownKind::Waiting => ("waits for you", "wait for you"),
        ShownKind::Stuck => ("stuck", "stuck"),
        ShownKind::Error => ("failed", "failed"),
        ShownKind::Complete => ("done", "done"),
        ShownKind::Idle => ("idle", "idle"),
        ShownKind::Status => ("status", "statuses"),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, count)) in self.counts.iter().enumerate() {
            let (one, several) = words(*kind);
            let separator = if at == 0 { "" } else { ", " };
            write!(formatter, "{separator}{count} {}", if *count == 1 { one } else { several })?;
        }
        Ok(())
    }
}

/// The id of the digest's popup. There is one digest at a time, so a newer one replaces it; the digest is not a message of the
/// journal.
pub fn digest_id() -> MessageId {
    MessageId::new(0, *b"the digest")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Place, WorkspaceId};

    fn record(kind: ShownKind, unix_ms: i64) -> Record {
        let (stored, category) = kind.stored();
        let id = MessageId::new(u64::try_from(unix_ms).unwrap(), [0; 10]);
        let record = Record::new(id, Place::workspace(WorkspaceId::new("w")), stored, "x", unix_ms);
        Record { category: category.map(Into::into), ..record }
    }

    #[test]
    fn the_most_urgent_come_first_and_every_kind_has_its_words() {
        let records: Vec<Record> =
            ShownKind::all().flat_map(|kind| [record(kind, 1), record(kind, 2)]).collect();
        assert_eq!(
            Digest::of(&records).to_string(),
            "2 ask, 2 need permission, 2 wait for you, 2 stuck, 2 failed, 2 done, 2 idle, 2 statuses"
        );
        assert_eq!(
            Digest::of(&[record(ShownKind::Status, 1), record(ShownKind::Permission, 1)]).to_string(),
            "1 needs permission, 1 status"
        );
        assert!(Digest::of([]).is_empty() && Digest::of([]).to_string().is_empty());
    }

    #[test]
    fn what_is_read_and_over_is_not_in_it() {
        let done = record(ShownKind::Complete, 10);
        assert!(Digest::includes(&done, 10) && !Digest::includes(&done, 11));
        assert!(!Digest::includes(&Record { is_read: true, is_resolved: true, ..done }, 0));
        let asked = Record { is_read: true, ..record(ShownKind::Permission, 10) };
        assert!(Digest::includes(&asked, 0), "an agent still waits");
        assert!(!Digest::includes(&Record { snoozed_until: Some(20).into(), ..asked.clone() }, 0));
        assert!(!Digest::includes(&Record { is_resolved: true, ..asked }, 0));
        assert_eq!(record(ShownKind::Error, 1).kind, Kind::Error);
    }
}
