//! Records an event: in the database, or in the spool if the database is busy.

use std::io;

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
    /// Records an event of a hook. When this returns, the event is in the database or in the spool, or changed nothing.
    ///
    /// If the write lock is held for [`LockTimeout::HOOK`], the event is spooled, and a kill afterwards loses nothing. It is also
    /// spooled if an earlier event of its session is, to preserve their order. No message enters the agent's turn with a spooled
    /// event.
    pub fn record_event(
        &mut self,
        event: &AgentEvent,
        wanted: InboxRequest<'_>,
    ) -> Result<EventOutcome, Error> {
        let spool = Spool::of(&self.home);
        let mut failure = None;
        // Checked before the state: an event that is spooled after this check happened later.
        if !spool.has_any_of(&event.agent.id) {
            if self.changes_nothing(event, wanted).unwrap_or(false) {
                return Ok(EventOutcome::default());
            }
            match self.write_event(event, wanted) {
                Ok(outcome) => return Ok(outcome),
                Err(error) => failure = Some(error),
            }
        }
        match put(&spool, event) {
            Ok(_) => {
                self.wake_hub();
                wake_commands_unless(self.hub_was_woken(), &self.home);
                Ok(EventOutcome { spooled: true, ..EventOutcome::default() })
            }
            // The spool is not writable either: wait for the lock once more.
            Err(unspooled) => {
                let written = match failure {
                    None | Some(Error::Busy { .. }) => self.write_event(event, wanted),
                    Some(failure) => Err(failure),
                };
                written.inspect_err(|error| {
                    spool.count_lost(event.stamp.unix_ms, &format!("{error}; spooling: {unspooled}"));
                })
            }
        }
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
        let (outcome, bells) = self.with_lock_timeout(LockTimeout::HOOK, |journal| {
            journal.write(|transaction| event.apply(transaction, wanted, time))
        })?;
        self.wake(&bells);
        Ok(outcome)
    }
}

/// Spools an event if the database cannot even be opened. Returns true if a hub was woken.
pub fn spool_event(home: &Home, event: &AgentEvent) -> io::Result<bool> {
    let spool = Spool::of(home);
    match put(&spool, event) {
        Ok(_) => {
            let hub_was_woken = doorbell::wake_hub(home);
            wake_commands_unless(hub_was_woken, home);
            Ok(hub_was_woken)
        }
        Err(error) => {
            spool.count_lost(event.stamp.unix_ms, &error.to_string());
            Err(error)
        }
    }
}

/// Wakes all waiting commands if no hub was woken and none may be started: a listener then applies the event.
fn wake_commands_unless(hub_was_woken: bool, home: &Home) {
    if !hub_was_woken && home.hub_starter().is_none() {
        doorbell::wake_all(home);
    }
}
