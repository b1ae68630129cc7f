//! Journal writes that failed and are retried, and the disk outage that made them fail.
//!
//! While the disk is full, read-only or failing, what the hub itself has to write waits in memory. Reports of hosts wait in the
//! hosts.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use ringer_core::agent::Signal;
use ringer_core::message::SurfaceId;
use ringer_core::{Draft, MessageId};
use ringer_journal::Error;

use super::ingest::RETRY_AFTER;
use super::problems::Problem;

/// Limits the queue. At the usual rate it holds several minutes.
pub(super) const MAX_WAITING: usize = 1024;
/// How long the loop retries writes before it handles other events. Each write waits for the disk once.
pub(super) const WRITE_FOR: Duration = Duration::from_millis(4);

/// Something that the hub writes on its own. A request of a client, or a report with an id, is answered with `busy` instead.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JournalWrite {
    /// A message. It has its id from the start, so that retries append it once.
    Append { draft: Box<Draft>, id: MessageId, unix_ms: i64 },
    /// A terminal's signal about the agent in it.
    Signal { surface: SurfaceId, signal: Signal },
}

/// Writes to retry, oldest first.
#[derive(Debug, Default)]
pub(super) struct JournalWriteQueue {
    waiting: VecDeque<JournalWrite>,
    retry_at: Option<Duration>,
}

impl JournalWriteQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a write at the end. Returns false if the queue is full.
    pub(super) fn add(&mut self, write: JournalWrite, retry_at: Duration) -> bool {
        let has_room = !self.is_full();
        if has_room {
            self.waiting.push_back(write);
            self.retry_at.get_or_insert(retry_at);
        }
        has_room
    }

    /// Removes the oldest write to retry it now. The others stay due.
    pub(super) fn take_first(&mut self) -> Option<JournalWrite> {
        let first = self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.retry_at = None;
        }
        first
    }

    /// Puts the oldest write back, to be retried later.
    pub(super) fn put_back(&mut self, first: JournalWrite, retry_at: Duration) {
        self.waiting.push_front(first);
        self.retry_at = Some(retry_at);
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.retry_at.is_some_and(|at| at <= now)
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.retry_at
    }
}

/// A disk that cannot be written, until it recovers.
#[derive(Debug, Default)]
pub(super) struct DiskOutage {
    /// Operations already logged, so that each is logged once per outage and not on every retry.
    logged: BTreeSet<&'static str>,
    last_error: String,
    /// The hub store (`hub.db`) fails independently of the journal.
    store_failing: bool,
    /// When to probe the journal again; `None` while everything works.
    retry_at: Option<Duration>,
}

impl DiskOutage {
    /// Records a failed write. Returns true if it should be logged.
    pub(super) fn record(&mut self, operation: &'static str, error: &Error, now: Duration) -> bool {
        self.last_error = error.to_string();
        self.retry_at.get_or_insert(now + RETRY_AFTER);
        self.logged.insert(operation)
    }

    pub(super) fn set_store_failing(&mut self, is_failing: bool) {
        self.store_failing = is_failing;
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.retry_at
    }

    /// Returns true once per retry interval.
    pub(super) fn should_probe(&mut self, now: Duration) -> bool {
        let is_due = self.retry_at.is_some_and(|at| at <= now);
        if is_due {
            self.retry_at = Some(now + RETRY_AFTER);
        }
        is_due
    }

    /// Ends the outage, unless the store is still failing. Returns true if there was one.
    pub(super) fn recover(&mut self) -> bool {
        let is_over = self.retry_at.is_some() && !self.store_failing;
        if is_over {
            self.logged.clear();
            self.retry_at = None;
        }
        is_over
    }

    /// The problem to show while the outage lasts.
    pub(super) fn problem(&self) -> Problem {
        let text = format!("{}: what terminals report waits until it can be written", self.last_error);
        Problem { text, hint: "ringer doctor" }
    }
}

#[cfg(test)]
mod tests {
    use ringer_core::message::Tag;
    use ringer_core::{Kind, Scope, Sender};

    use super::*;

    fn full() -> Error {
        Error::Full { path: "/home".into() }
    }

    #[test]
    fn writes_keep_their_order_and_there_is_a_limit() {
        let write = |number: u64| JournalWrite::Append {
            draft: Box::new(Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), "x")),
            id: MessageId::new(number, [0; 10]),
            unix_ms: 0,
        };
        let mut queue = JournalWriteQueue::default();
        let second = Duration::from_secs(1);
        for number in 0..MAX_WAITING as u64 {
            assert!(queue.add(write(number), second * 2));
        }
        assert!(!queue.add(write(7), second * 3));
        assert_eq!(queue.next_deadline(), Some(second * 2), "the first one decides");
        assert!(!queue.is_due(second) && queue.is_due(second * 2));
        assert_eq!(queue.take_first(), Some(write(0)));
        queue.put_back(write(0), second * 3);
        assert_eq!(queue.next_deadline(), Some(second * 3));
        for number in 0..MAX_WAITING as u64 {
            assert_eq!(queue.take_first(), Some(write(number)));
        }
        assert!(queue.is_empty() && queue.next_deadline().is_none());
    }

    #[test]
    fn an_outage_logs_each_operation_once_and_ends_when_all_work() {
        let (mut outage, second) = (DiskOutage::default(), RETRY_AFTER);
        assert!(!outage.recover() && outage.next_deadline().is_none());
        assert!(
            outage.record("cannot append", &full(), second)
                && !outage.record("cannot append", &full(), second)
        );
        outage.set_store_failing(true);
        assert!(outage.record("cannot commit", &full(), second * 2));
        assert!(!outage.should_probe(second) && outage.should_probe(second * 2));
        assert_eq!(outage.next_deadline(), Some(second * 3));
        assert!(!outage.recover(), "the store cannot be written yet");
        outage.set_store_failing(false);
        assert!(outage.recover() && !outage.recover() && outage.next_deadline().is_none());
        assert!(outage.record("cannot append", &full(), second), "the next outage logs it again");
        let text = outage.problem().text;
        assert!(text.starts_with("no space left in /home: what terminals report waits"), "{text}");
    }
}
