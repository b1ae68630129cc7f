//! Listening: waits for unread messages, delivers them, and only then moves the cursor.

use std::time::{Duration, Instant};

use ringer_core::Message;

use crate::db::repair::Repair;
use crate::error::Error;
use crate::ids::IdSource;
use crate::journal::consumer::Consumer;
use crate::journal::schema::Journal;
use crate::lock::Lock;
use crate::wake::subscription::Topic;
use crate::wake::waiter::{OnParentExit, Waiter, WakeReason};

/// How long a listener waits before it checks again for spooled events that were not applied in time.
const RETRY_SPOOL_AFTER: Duration = Duration::from_secs(1);

/// The result of listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenOutcome {
    /// This many messages were delivered.
    Delivered(usize),
    /// The deadline passed without a message.
    TimedOut,
    /// The parent process exited; nothing was read.
    Orphaned,
}

/// A process that reads as a consumer.
#[derive(Debug)]
pub struct Listener<'a> {
    journal: &'a mut Journal,
    consumer: Consumer,
    own: Option<String>,
    waiter: Waiter,
}

impl<'a> Listener<'a> {
    /// Starts to listen. From now on no message is missed. `own` is the agent that listens: its own messages are skipped.
    ///
    /// A new consumer starts at the beginning of the journal. With `from_now`, the consumer starts at the end.
    pub fn begin(
        journal: &'a mut Journal,
        consumer: Consumer,
        own: Option<String>,
        from_now: bool,
        parent: OnParentExit,
    ) -> Result<Self, Error> {
        let now = IdSource::now().unix_ms;
        let topic = Topic::Lead { own: own.clone() };
        let (waiter, ()) =
            Waiter::register(journal, topic, consumer.scope(), consumer.name(), parent, |transaction| {
                Journal::ensure_cursor(transaction, &consumer, from_now, now)
            })?;
        Ok(Self { journal, consumer, own, waiter })
    }

    /// Waits for unread messages until the deadline, and passes at most `most` of them to `consume`.
    ///
    /// `consume` returns how many it has written and flushed; the cursor moves past those. The others are delivered again with
    /// the same ids, as after a crash.
    pub fn next<E: From<Error>>(
        &mut self,
        deadline: Option<Instant>,
        most: usize,
        mut consume: impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<ListenOutcome, E> {
        loop {
            self.waiter.prepare(self.journal)?;
            if self.waiter.is_orphaned() {
                return Ok(ListenOutcome::Orphaned);
            }
            let look_again = self.settle_spool();
            let taken = self.deliver(deadline, most, &mut consume)?;
            if taken > 0 {
                return Ok(ListenOutcome::Delivered(taken));
            }
            let until = [deadline, look_again].into_iter().flatten().min();
            match self.waiter.wait(self.journal, &[], until)? {
                WakeReason::Rung | WakeReason::Other => {}
                WakeReason::TimedOut if until != deadline => {}
                WakeReason::TimedOut => return Ok(ListenOutcome::TimedOut),
                WakeReason::Orphaned => return Ok(ListenOutcome::Orphaned),
            }
        }
    }

    /// Takes the last repair of the database, so that it is reported once.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.journal.take_repair()
    }

    /// Waits until spooled events are applied. If some are left, returns when to check again: no doorbell rings when the write
    /// lock is released.
    fn settle_spool(&mut self) -> Option<Instant> {
        let settled = self.journal.settle_spool().and_then(|()| self.journal.has_spooled_events());
        settled.unwrap_or(true).then(|| Instant::now() + RETRY_SPOOL_AFTER)
    }

    fn deliver<E: From<Error>>(
        &mut self,
        deadline: Option<Instant>,
        most: usize,
        consume: &mut impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let waiter = &self.waiter;
        // Waiting for the lock may have taken long.
        let is_wanted = || !waiter.is_orphaned();
        self.journal.deliver_unread(&self.consumer, self.own.as_deref(), deadline, most, is_wanted, consume)
    }
}

impl Journal {
    /// Passes at most `most` unread messages to `consume`, and moves the cursor past those that it consumed.
    ///
    /// Holds the consumer's lock from reading to advancing: of two readers, only one gets a message, unless the first dies
    /// before it has advanced the cursor. If another reader holds the lock until the deadline, reads nothing.
    fn deliver_unread<E: From<Error>>(
        &mut self,
        consumer: &Consumer,
        own: Option<&str>,
        deadline: Option<Instant>,
        most: usize,
        is_wanted: impl Fn() -> bool,
        mut consume: impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let lock = Lock::take(&consumer.lock(self), deadline)
            .map_err(|error| self.home.error("taking the consumer's lock", error))?;
        let Some(_lock) = lock else { return Ok(0) };
        if !is_wanted() {
            return Ok(0);
        }
        let now = IdSource::now().unix_ms;
        let messages = self.unread(consumer, own, now, most)?;
        if messages.is_empty() {
            return Ok(0);
        }
        let taken = consume(&messages)?.min(messages.len());
        if let Some(last) = messages[..taken].last() {
            self.advance(consumer, (last.seq, &last.id), now)?;
        }
        Ok(taken)
    }
}
