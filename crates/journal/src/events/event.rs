//! An event of an agent's hook: its format in the spool, its effect on the database, and recording it in the database, or in the
//! spool if the database is busy.

use std::time::Duration;
use std::{fmt, io};

use ringer_core::agent::{AgentState, AgentTimeouts, Answer, Authority, Prompt, Signal};
use ringer_core::message::SessionNonce;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::events::spool::Spool;
use crate::home::Home;
use crate::ids::IdSource;
use crate::journal::agent::apply::{EventTime, apply_signals, is_late, store_prompt};
use crate::journal::agent::update::nothing_changes;
use crate::journal::agent::{AgentChange, AgentInfo, AgentUpdate};
use crate::journal::inbox::{self, InboxUpdate, SelectParts};
use crate::journal::schema::Journal;
use crate::journal::{lead, prompt};
use crate::wake::doorbell;

/// An event that an agent's hook reports. Self-contained, so that another process can apply it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvent {
    /// The agent.
    #[serde(rename = "of")]
    pub agent: AgentInfo,
    /// Signals about the agent's state, in order.
    pub signals: Vec<Signal>,
    /// The event may send messages. Events of subagents may not.
    pub notify: bool,
    /// When it happened, on the monotonic clock. In the spool, this is part of the file name.
    #[serde(skip)]
    pub mono: Duration,
    /// When it happened, and randomness for the ids of its messages: if it is applied twice, they are the same messages.
    pub stamp: IdSource,
    /// A session starts, and may become the lead of its scope.
    pub session_starts: bool,
    /// A turn starts or ends, which resets the count of blocked stops.
    pub turn_changes: bool,
    /// The dialog that the client shows with this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// The answer that the client accepted in the dialog about the call of its signals, if it reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Answer>,
    /// A nonce for the session, sent with the answer to this event. Ignored if the session already has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<SessionNonce>,
    /// The messages it confirms. `None` for a subagent, whose events are not part of its agent's turn.
    pub confirms: Option<Confirmation>,
}

/// The messages that an event confirms: those delivered with an earlier call, and those that it contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The tool call of the event. Messages delivered with this call are not confirmed yet.
    pub call_id: Option<String>,
    /// Ids of the messages that the event contains.
    #[serde(rename = "arrived")]
    pub confirmed_ids: Vec<String>,
}

/// Which messages may enter the agent's turn with the answer to its event.
#[derive(Default, Clone, Copy)]
pub struct InboxRequest<'a> {
    /// Selects the pending messages that enter; `None` if none can.
    pub choose: Option<SelectParts<'a>>,
    /// The turn is ending, and continues if a message enters.
    pub holds_turn: bool,
}

impl fmt::Debug for InboxRequest<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let takes = self.choose.is_some();
        formatter
            .debug_struct("InboxRequest")
            .field("takes", &takes)
            .field("holds_turn", &self.holds_turn)
            .finish()
    }
}

/// The result of recording an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventOutcome {
    /// What it changed.
    pub change: AgentChange,
    /// The turn continues with the messages that entered it.
    pub held: bool,
    /// It was spooled, because the database could not be written in time.
    pub spooled: bool,
}

/// Writes an event to the spool. Returns its file name.
pub(super) fn put(spool: &Spool, event: &AgentEvent) -> io::Result<String> {
    let writer = spool.begin(&event.agent.id, event.stamp.number())?;
    let spooled = SpooledEvent { version: VERSION, event: event.clone() };
    writer.finish(event.mono, &serde_json::to_vec(&spooled)?)
}

impl AgentEvent {
    fn signals_at(&self, mono: Duration) -> AgentUpdate<'_> {
        let timeouts = AgentTimeouts::default();
        AgentUpdate { agent: &self.agent, signals: &self.signals, mono, timeouts, notify: self.notify }
    }

    pub(super) fn claim<'a>(&'a self, choose: Option<SelectParts<'a>>) -> Option<InboxUpdate<'a>> {
        let confirms = self.confirms.as_ref()?;
        Some(InboxUpdate {
            call_id: confirms.call_id.as_deref(),
            choose,
            confirmed_ids: &confirms.confirmed_ids,
        })
    }

    /// Applies the event in a transaction. Returns the doorbells to wake after the commit.
    pub(super) fn apply(
        &self,
        transaction: &Transaction<'_>,
        wanted: InboxRequest<'_>,
        time: EventTime,
    ) -> rusqlite::Result<(EventOutcome, Vec<String>)> {
        let is_late = is_late(transaction, &self.signals_at(time.mono), time)?;
        // A late event does not change the session, because newer events were applied.
        let claim = self.claim(wanted.choose).filter(|_| !is_late);
        let agent = self.agent.id.as_str();
        let claimed = match claim {
            Some(claim) => inbox::claim(transaction, agent, &claim, &self.stamp)?,
            None => None,
        };
        let held = wanted.holds_turn && claimed.is_some();
        // A held turn has not ended: the agent keeps working.
        let goes_on = [Signal::state(Authority::Hook, AgentState::Working)];
        let mut update = self.signals_at(time.mono);
        if held {
            update.signals = &goes_on;
        }
        if let Some(taken) = &self.taken {
            for call in self.signals.iter().filter_map(|signal| signal.call.as_deref()) {
                prompt::note_client_answer(transaction, &self.agent.id, call, taken)?;
            }
        }
        let (messages_sent, bells) = apply_signals(transaction, &update, &mut { self.stamp }, Some(time))?;
        if let Some(asked) = &self.prompt {
            store_prompt(transaction, &update, asked, self.stamp.unix_ms)?;
        }
        if let Some(name) = self.agent.name.as_deref().filter(|_| self.session_starts) {
            inbox::adopt(transaction, agent, name)?;
        }
        if let Some(nonce) = &self.nonce {
            transaction
                .prepare("UPDATE agent SET nonce = coalesce(nonce, ?2) WHERE id = ?1")?
                .execute([agent, &nonce.to_string()])?;
        }
        if self.session_starts && self.agent.manager.is_none() && !is_late {
            lead::claim(transaction, &self.agent.scope, &self.agent.id)?;
        }
        if held || (self.turn_changes && !is_late) {
            let count = if held { "blocks + 1" } else { "0" };
            transaction
                .prepare(&format!("UPDATE agent SET blocks = {count} WHERE id = ?1"))?
                .execute([agent])?;
        }
        let change = AgentChange { written: true, messages_sent, claimed };
        Ok((EventOutcome { change, held, spooled: false }, bells))
    }
}

/// The content of a spool file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SpooledEvent {
    pub(super) version: u32,
    pub(super) event: AgentEvent,
}

/// Version of spool files. Files with a newer version are left for that version of Ringer.
pub(super) const VERSION: u32 = 1;

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
