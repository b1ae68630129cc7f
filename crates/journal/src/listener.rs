//! Listening: sleep until there is something to read, hand it over, and only then move the cursor.

use std::time::{Duration, Instant};

use ringer_core::Message;

use crate::consumer::Consumer;
use crate::error::Error;
use crate::journal::Journal;
use crate::lock::Lock;
use crate::repair::Repair;
use crate::stamp::{Stamp, monotonic};
use crate::turn::Patience;
use crate::vigil::{Parent, Vigil, Woke};
use crate::waiter::Topic;

/// How long what is spooled waits for another try when the database could not be written.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How listening ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// So many messages were handed over.
    Messages(usize),
    /// Nothing came in time.
    Nothing,
    /// The process that started us has gone; nothing was read.
    Orphaned,
}

/// A listener: one process that reads as some consumer.
#[derive(Debug)]
pub struct Listener<'a> {
    journal: &'a mut Journal,
    consumer: Consumer,
    own: Option<String>,
    vigil: Vigil,
}

impl<'a> Listener<'a> {
    /// Begins to listen. From here on nothing is missed. `own` is the agent that listens: it does not hear itself.
    ///
    /// A consumer that never listened before starts at the beginning of what is kept, or with `from_now` at its end.
    pub fn begin(
        journal: &'a mut Journal,
        consumer: Consumer,
        own: Option<String>,
        from_now: bool,
        parent: Parent,
    ) -> Result<Self, Error> {
        let now = Stamp::now().unix_ms;
        let topic = Topic::Lead { own: own.clone() };
        let (vigil, ()) =
            Vigil::keep(journal, topic, consumer.scope(), consumer.name(), parent, |transaction| {
                Journal::ensure_cursor(transaction, &consumer, from_now, now)
            })?;
        Ok(Self { journal, consumer, own, vigil })
    }

    /// Waits until there is something to read, at the latest until the deadline, and hands it over, at most so many.
    ///
    /// `hand_over` says how many it took and has flushed; the cursor then moves behind those. Whatever it did not take,
    /// because it failed or the process died, comes again with the same ids.
    pub fn next<E: From<Error>>(
        &mut self,
        deadline: Option<Instant>,
        most: usize,
        mut hand_over: impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<Heard, E> {
        loop {
            self.vigil.prepare(self.journal)?;
            if self.vigil.is_orphaned() {
                return Ok(Heard::Orphaned);
            }
            let look_again = self.take_in_spool();
            let taken = self.deliver(deadline, most, &mut hand_over)?;
            if taken > 0 {
                return Ok(Heard::Messages(taken));
            }
            let until = [deadline, look_again].into_iter().flatten().min();
            match self.vigil.sleep(self.journal, until)? {
                Woke::Rang => {}
                Woke::TimedOut if until != deadline => {}
                Woke::TimedOut => return Ok(Heard::Nothing),
                Woke::Orphaned => return Ok(Heard::Orphaned),
            }
        }
    }

    /// What was done to a damaged database since the last time.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.journal.take_repair()
    }

    /// Takes in what hooks spooled. Gives when to look again, if something is left: no ring announces that the write lock
    /// came free.
    fn take_in_spool(&mut self) -> Option<Instant> {
        match self.journal.take_in_spool(&monotonic, Patience::HOOK) {
            Ok(taken) => taken.more.then(Instant::now),
            Err(_) => Some(Instant::now() + LOOK_AGAIN_AFTER),
        }
    }

    fn deliver<E: From<Error>>(
        &mut self,
        deadline: Option<Instant>,
        most: usize,
        hand_over: &mut impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let vigil = &self.vigil;
        // Waiting for the lock may have taken long.
        let is_wanted = || !vigil.is_orphaned();
        self.journal.hand_out(&self.consumer, self.own.as_deref(), deadline, most, is_wanted, hand_over)
    }
}

impl Journal {
    /// Hands over what a consumer has not read, at most so many, and moves its cursor behind what was taken.
    ///
    /// Under the consumer's lock from reading to advancing, so that of two readers one gets a message, and the other
    /// gets it only if the first died on the way. If another reader is at it until the deadline, nothing is read.
    pub fn hand_out<E: From<Error>>(
        &mut self,
        consumer: &Consumer,
        own: Option<&str>,
        deadline: Option<Instant>,
        most: usize,
        is_wanted: impl Fn() -> bool,
        mut hand_over: impl FnMut(&[Message]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let lock = Lock::take(&consumer.lock(self), deadline)
            .map_err(|error| self.home.error("taking the consumer's lock", error))?;
        let Some(_lock) = lock else { return Ok(0) };
        if !is_wanted() {
            return Ok(0);
        }
        let now = Stamp::now().unix_ms;
        let messages = self.unread(consumer, own, now, most)?;
        if messages.is_empty() {
            return Ok(0);
        }
        let taken = hand_over(&messages)?.min(messages.len());
        if let Some(last) = messages[..taken].last() {
            self.advance(consumer, (last.seq, &last.id), now)?;
        }
        Ok(taken)
    }
}
