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
use crate::journal::inbox;
use crate::journal::schema::Journal;
use crate::wake::doorbell;

impl Journal {
    /// Records an event of a hook. When this returns, it is in the database or in the spool, or changed nothing.
    ///
    /// The write lock is tried once. If another writer has it, the event is spooled; a kill after that loses nothing. Then it is
    /// left to the hub, which applies many at once, if nothing in the answer depends on it. Else it is applied here with all
    /// other events of its session, if the lock is released in time.
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
            Ok(_) if may_wait && self.is_left_to_hub(event, wanted) => {
                return Ok(EventOutcome { spooled: true, ..EventOutcome::default() });
            }
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

    /// Whether a hub was woken to apply a spooled event of which its hook needs to know nothing: the event changes nothing in
    /// the agent's inbox, belongs to no dialog, and makes no agent a lead.
    fn is_left_to_hub(&mut self, event: &AgentEvent, wanted: InboxRequest<'_>) -> bool {
        if event.session_starts || event.prompt.is_some() || event.taken.is_some() {
            return false;
        }
        let (agent, claim) = (event.agent.id.as_str(), event.claim(wanted.choose));
        let waits = self.read(|connection| inbox::waits(connection, agent, claim.as_ref(), &event.stamp));
        if waits.unwrap_or(true) {
            return false;
        }
        self.wake_all();
        self.hub_was_woken()
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
