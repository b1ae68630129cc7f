//! Messages of another machine beyond the rows that it may make: one row of its own counts them. They stay in the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::arrival::ListingLimit;
use crate::message::MessageId;

/// How often the row of a machine changes, however fast messages come: each change is written to the disk.
pub(super) const UPDATE_EVERY: Duration = Duration::from_secs(1);

/// The row of a machine.
#[derive(Debug, Clone)]
pub(super) struct Count {
    /// The first message that it stands for.
    pub(super) row: MessageId,
    /// How many it stands for.
    pub(super) messages: u64,
    /// How many it says.
    pub(super) said: u64,
    pub(super) said_at: Duration,
}

/// What is counted and not listed, by machine: no more machines than may make rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Unlisted {
    pub(super) limit: ListingLimit,
    pub(super) counts: BTreeMap<String, Count>,
}

/// Machines that have a row here. Messages of others are in the journal alone.
pub(super) const MAX_MACHINES: usize = 256;

impl Unlisted {
    /// When a row is to be updated.
    pub(super) fn next_update(&self) -> Option<Duration> {
        let behind = self.counts.values().filter(|count| count.messages != count.said);
        behind.map(|count| count.said_at + UPDATE_EVERY).min()
    }
}

/// What the row of a machine says.
pub(super) fn text(messages: u64, machine: &str) -> String {
    let word = if messages == 1 { "message" } else { "messages" };
    format!("{messages} more {word} from {machine}, see: ringer log --everywhere")
}
