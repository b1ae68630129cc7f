//! Messages of another machine beyond its listing limit: a single row counts them. They stay in the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::arrival::ListingLimit;
use crate::message::MessageId;

/// How often the row of a machine changes at most, however fast messages arrive: each change is written to disk.
pub(super) const UPDATE_EVERY: Duration = Duration::from_secs(1);

/// The row that counts the messages of a machine.
#[derive(Debug, Clone)]
pub(super) struct Count {
    /// The first message that the row stands for.
    pub(super) row: MessageId,
    /// The number of messages that the row stands for.
    pub(super) messages: u64,
    /// The number in the text of the row.
    pub(super) said: u64,
    pub(super) said_at: Duration,
}

/// The counts of unlisted messages, by machine. There are at most [`MAX_MACHINES`].
#[derive(Debug, Clone, Default)]
pub(super) struct Unlisted {
    pub(super) limit: ListingLimit,
    pub(super) counts: BTreeMap<String, Count>,
}

/// The most machines with such a row. Messages of others are in the journal alone.
pub(super) const MAX_MACHINES: usize = 256;

impl Unlisted {
    /// When the next row must be updated.
    pub(super) fn next_update(&self) -> Option<Duration> {
        let behind = self.counts.values().filter(|count| count.messages != count.said);
        behind.map(|count| count.said_at + UPDATE_EVERY).min()
    }
}

/// The text of a machine's row.
pub(super) fn text(messages: u64, machine: &str) -> String {
    let word = if messages == 1 { "message" } else { "messages" };
    format!("{messages} more {word} from {machine}, see: ringer log --everywhere")
}
