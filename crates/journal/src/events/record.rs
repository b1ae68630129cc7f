//! Records events: in the database at once, or in the spool.

use std::io;
use std::time::Duration;

use super::event::{AgentEvent, EventOutcome, InboxRequest, put};
use super::spool::Spool;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::home::Home;
use crate::journal::agent::apply::EventTime;
use crate::journal::agent::update::nothing_changes;
use crate::journal::schema::Journal;
use crate::wake::doorbell;

impl Journal {
    /// Records an event of a hook. When this returns, it is in the database or in the spool, or changed nothing.
    ///
    /// The write lock is tried once. If another writer has it, the event is spooled first and then applied with all other
    /// events of its session, if the lock is released in time; a kill in between loses nothing.
    pub fn record_event(
        &mut self,
        event: &AgentEvent,
        wanted: InboxRequest<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<EventOutcome, Error> {
        let spool = Spool::of(&self.home);
        let mut failure = None;
        // Checked before the state: an event of this session that is spooled later happened later.
        if !spool.has_any_of(&event.agent.id) {
            if self.changes_nothing(event, wanted).unwrap_or(false) {
                return Ok(EventOutcome::default());
            }
            match self.with_lock_timeout(LockTimeout::NONE, |journal| journal.write_event(event, wanted)) {
                Ok(outcome) => return Ok(outcome),
                Err(error) => failure = Some(error),
            }
        }
        let may_wait = matches!(failure, None | Some(Error::Busy { .. }));
        match put(&spool, event) {
            Ok(name) if may_wait => {
                let taken = self.ingest_session(&spool, &event.agent.id, (&name, wanted), clock);
                if let Ok(outcome) = taken {
                    return Ok(outcome);
                }
            }
            Ok(_) => {}
            // It can be spooled nowhere, so waiting for the lock is all that is left.
            Err(unspooled) => {
                let written = if may_wait {
                    self.write_event(event, wanted)
                } else {
                    Err(failure.unwrap_or(Error::Busy { waited: Duration::ZERO }))
                };
                return written.inspect_err(|error| {
                    spool.count_lost(event.stamp.unix_ms, &format!("{error}; spooling: {unspooled}"));
                });
            }
        }
        self.wake_all();
        Ok(EventOutcome { spooled: true, ..EventOutcome::default() })
    }

    fn changes_nothing(&mut self, event: &AgentEvent, wanted: InboxRequest<'_>) -> Result<bool, Error> {
        if event.session_starts
            || event.prompt.is_some()
            || event.taken.is_some()
            || (event.turn_changes && self.blocks(&event.agent.id)? > 0)
        {
            return Ok(false);
        }
        let claim = event.claim(wanted.choose);
        let signals = event.signals_at(event.mono);
        self.read(|connection| nothing_changes(connection, &signals, claim.as_ref(), &event.stamp))
    }

    fn write_event(&mut self, event: &AgentEvent, wanted: InboxRequest<'_>) -> Result<EventOutcome, Error> {
        let time = EventTime { mono: event.mono, now: event.mono, earlier_boot_ms: None };
        let (outcome, bells) = self.write(|transaction| event.apply(transaction, wanted, time))?;
        self.wake(&bells);
        Ok(outcome)
    }
}

/// Spools an event when the database cannot even be opened. Gives whether a hub was woken.
pub fn spool_event(home: &Home, event: &AgentEvent) -> io::Result<bool> {
    let spool = Spool::of(home);
    match put(&spool, event) {
        Ok(_) => Ok(doorbell::wake_all(home)),
        Err(error) => {
            spool.count_lost(event.stamp.unix_ms, &error.to_string());
            Err(error)
        }
    }
}
