//! Limits the rows of the list that another machine may add. A single row counts the messages beyond the limit, which stay in
//! the journal.
//!
//! A person reads a few rows, however many messages a machine sends. A machine that comes back after a day may list everything
//! it has; a machine that never stops sending is held to what somebody could still look through.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::message::MessageId;

/// A token bucket: its size, and the time until one row is added.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    at_once: u32,
    one_more: Duration,
}

/// The allowance of one machine, for all its senders together.
const OF_MACHINE: Allowance = Allowance { at_once: 1000, one_more: Duration::from_secs(1) };
/// The allowance of one sender, so that a single agent that runs wild leaves room for the others of its machine.
const OF_SENDER: Allowance = Allowance { at_once: 500, one_more: Duration::from_secs(2) };
/// The most machines, and senders of each machine, that are counted at once. Messages of further ones are not listed until
/// others are forgotten, which happens once their allowance is full again.
pub(crate) const MAX_MACHINES: usize = 256;
const MAX_SENDERS: usize = 1000;

/// The rows that one machine or sender may still list.
#[derive(Debug, Clone, Copy)]
struct Remaining {
    rows: u32,
    /// When the bucket was last refilled.
    since: Duration,
}

impl Remaining {
    fn all(allowance: Allowance, now: Duration) -> Self {
        Self { rows: allowance.at_once, since: now }
    }

    fn refilled(self, allowance: Allowance, now: Duration) -> Self {
        let passed = now.saturating_sub(self.since);
        let more = passed.as_millis() / allowance.one_more.as_millis();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let rows = self.rows.saturating_add(more);
        if rows >= allowance.at_once {
            return Self::all(allowance, now);
        }
        Self { rows, since: self.since + allowance.one_more * more }
    }
}

/// The remaining rows, by the name of a machine or sender.
#[derive(Debug, Clone, Default)]
struct Counts(HashMap<String, Remaining>);

impl Counts {
    /// Returns the rows left for a name. `None` if the name is unknown and there is no room for it.
    fn rows_left(
        &mut self,
        name: &str,
        allowance: Allowance,
        most: usize,
        now: Duration,
    ) -> Option<&mut Remaining> {
        if !self.0.contains_key(name) {
            if self.0.len() >= most {
                self.0.retain(|_, remaining| remaining.refilled(allowance, now).rows < allowance.at_once);
            }
            if self.0.len() >= most {
                return None;
            }
            self.0.insert(name.to_owned(), Remaining::all(allowance, now));
        }
        let remaining = self.0.get_mut(name)?;
        *remaining = remaining.refilled(allowance, now);
        Some(remaining)
    }
}

/// Decides which messages of other machines are listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListingLimit {
    machines: Counts,
    /// By machine.
    senders: HashMap<String, Counts>,
}

impl ListingLimit {
    /// Returns true if one more message of this machine and sender is listed, and counts it.
    pub(crate) fn admits(&mut self, now: Duration, machine: &str, sender: &str) -> bool {
        let Self { machines, senders } = self;
        // The senders of machines that were forgotten are forgotten, too.
        if senders.len() >= MAX_MACHINES && !senders.contains_key(machine) {
            senders.retain(|machine, _| machines.0.contains_key(machine));
        }
        let Some(all) = machines.rows_left(machine, OF_MACHINE, MAX_MACHINES, now) else { return false };
        // Checked before the senders are looked up: a machine may invent any number of names.
        if all.rows == 0 {
            return false;
        }
        let own = senders.entry(machine.to_owned()).or_default();
        let Some(own) = own.rows_left(sender, OF_SENDER, MAX_SENDERS, now) else { return false };
        if own.rows == 0 {
            return false;
        }
        all.rows -= 1;
        own.rows -= 1;
        true
    }
}

/// How often the row of a machine changes at most, however fast messages arrive: each change is written to disk.
pub(crate) const UPDATE_EVERY: Duration = Duration::from_secs(1);

/// The row that counts the messages of a machine.
#[derive(Debug, Clone)]
pub(crate) struct UnlistedCount {
    /// The first message that the row stands for.
    pub(crate) row: MessageId,
    /// The number of messages that the row stands for.
    pub(crate) messages: u64,
    /// The number in the text of the row.
    pub(crate) shown: u64,
    pub(crate) shown_at: Duration,
}

/// The counts of unlisted messages, by machine. There are at most [`MAX_MACHINES`].
#[derive(Debug, Clone, Default)]
pub(crate) struct UnlistedMessages {
    pub(crate) limit: ListingLimit,
    pub(crate) counts: BTreeMap<String, UnlistedCount>,
}

impl UnlistedMessages {
    /// When the next row must be updated.
    pub(crate) fn next_update(&self) -> Option<Duration> {
        let behind = self.counts.values().filter(|count| count.messages != count.shown);
        behind.map(|count| count.shown_at + UPDATE_EVERY).min()
    }
}

/// The text of a machine's row.
pub(crate) fn unlisted_text(messages: u64, machine: &str) -> String {
    let word = if messages == 1 { "message" } else { "messages" };
    format!("{messages} more {word} from {machine}, see: ringer log --everywhere")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admitted(limit: &mut ListingLimit, now: u64, machine: &str, sender: &str, sent: usize) -> usize {
        (0..sent).filter(|_| limit.admits(Duration::from_secs(now), machine, sender)).count()
    }

    #[test]
    fn a_sender_is_held_to_its_own_limit_and_its_machine_to_another() {
        let mut limit = ListingLimit::default();
        assert_eq!(admitted(&mut limit, 0, "box", "a@box", 248_000), 500);
        assert_eq!(admitted(&mut limit, 0, "box", "b@box", 248_000), 500);
        assert_eq!(admitted(&mut limit, 0, "box", "c@box", 10), 0, "the machine has used up its own");
        assert_eq!(admitted(&mut limit, 0, "other", "c@other", 10), 10);
        assert_eq!(admitted(&mut limit, 60, "box", "a@box", 100), 30);
        assert_eq!(admitted(&mut limit, 60, "box", "c@box", 100), 30);
    }

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let mut limit = ListingLimit::default();
        let admitted = (0..100_000)
            .filter(|number| limit.admits(Duration::ZERO, "box", &format!("worker-{number}@box")))
            .count();
        assert_eq!(admitted, 1000);
        assert!(limit.senders.values().all(|senders| senders.0.len() <= MAX_SENDERS));
        let machines = (0..10_000).filter(|number| limit.admits(Duration::ZERO, &format!("m{number}"), "a"));
        assert_eq!(machines.count(), MAX_MACHINES - 1);
        assert!(limit.senders.len() <= MAX_MACHINES + 1);
    }

    proptest! {
        /// No span of time adds more rows than the allowance and what that span refills.
        #[test]
        fn no_machine_gets_more_than_its_allowance(
            steps in prop::collection::vec((0u64..5_000, 0usize..4, 1usize..400), 1..40),
        ) {
            let mut limit = ListingLimit::default();
            let (mut now, mut rows) = (0u64, 0u64);
            for (wait_ms, sender, sent) in steps {
                now += wait_ms;
                let at = Duration::from_millis(now);
                let sender = format!("worker-{sender}@box");
                rows += (0..sent).filter(|_| limit.admits(at, "box", &sender)).count() as u64;
                prop_assert!(rows <= 1000 + now / 1000);
            }
        }
    }
}
