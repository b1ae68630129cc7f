//! Events of agents' hooks: written to the database, or spooled and applied by the hub. None is lost.

use std::fmt;
use std::io;
use std::time::Duration;

use ringer_core::agent::{AgentState, AgentTimeouts, Answer, Authority, Prompt, Signal};
use ringer_core::message::SessionNonce;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use crate::events::spool::Spool;
use crate::ids::IdSource;
use crate::journal::agent::apply::{EventTime, apply_signals, is_late, store_prompt};
use crate::journal::agent::info::{AgentChange, AgentInfo, AgentUpdate};
use crate::journal::inbox::{self, Choose, InboxUpdate};
use crate::journal::lead;
use crate::journal::prompt;

/// One event of an agent, as its hook reports it. Complete: another process can apply it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvent {
    /// Which agent, and where it is.
    #[serde(rename = "of")]
    pub agent: AgentInfo,
    /// What the event says of its state, in order.
    pub signals: Vec<Signal>,
    /// Whether messages are sent about it. Subagents send none.
    pub notify: bool,
    /// When it happened, on the monotonic clock. In the spool, the name of the file says it.
    #[serde(skip)]
    pub mono: Duration,
    /// When it happened, and randomness for the ids of the messages it makes: applied twice, they are the same messages.
    pub stamp: IdSource,
    /// A session begins: it may become the lead of its scope.
    pub session_starts: bool,
    /// A turn begins or ends: the count of blocked stops starts again at 0.
    pub turn_changes: bool,
    /// What the client asks in a dialog with this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// The answer that the client took in the dialog about the call of its signals, where the client says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Answer>,
    /// What the session is told with the answer to this event: a session that has a nonce keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<SessionNonce>,
    /// Which messages it confirms. `None` for a subagent: its events are not its agent's turn.
    pub confirms: Option<Confirms>,
}

/// What an event confirms: messages delivered with an earlier call, and messages that the event itself shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirms {
    /// The tool call of the event. What was delivered with this call is not confirmed by it.
    pub call_id: Option<String>,
    /// The ids of the messages that the event shows.
    #[serde(rename = "arrived")]
    pub confirmed_ids: Vec<String>,
}

/// What may enter the agent's turn with the answer to its event.
#[derive(Default, Clone, Copy)]
pub struct InboxRequest<'a> {
    /// Which of the pending messages enter; `None` where nothing can.
    pub choose: Option<Choose<'a>>,
    /// The turn ends, and goes on if something enters.
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

/// What became of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventOutcome {
    /// What it changed in the database.
    pub change: AgentChange,
    /// The turn goes on with what entered it.
    pub held: bool,
    /// It is in the spool: the database could not be written in time.
    pub spooled: bool,
}

/// Puts an event into the spool. Gives the name of its file.
pub(super) fn put(spool: &Spool, event: &AgentEvent) -> io::Result<String> {
    let unfinished = spool.begin(&event.agent.id, event.stamp.number())?;
    let spooled = SpooledEvent { version: VERSION, event: event.clone() };
    unfinished.finish(event.mono, &serde_json::to_vec(&spooled)?)
}

impl AgentEvent {
    pub(super) fn signals_at(&self, mono: Duration) -> AgentUpdate<'_> {
        let timeouts = AgentTimeouts::default();
        AgentUpdate { agent: &self.agent, signals: &self.signals, mono, timeouts, notify: self.notify }
    }

    pub(super) fn claim<'a>(&'a self, choose: Option<Choose<'a>>) -> Option<InboxUpdate<'a>> {
        let confirms = self.confirms.as_ref()?;
        Some(InboxUpdate {
            call_id: confirms.call_id.as_deref(),
            choose,
            confirmed_ids: &confirms.confirmed_ids,
        })
    }

    /// Applies it in a transaction. Gives the doorbells to wake once that is on disk.
    pub(super) fn apply(
        &self,
        transaction: &Transaction<'_>,
        wanted: InboxRequest<'_>,
        time: EventTime,
    ) -> rusqlite::Result<(EventOutcome, Vec<String>)> {
        let is_late = is_late(transaction, &self.signals_at(time.mono), time)?;
        // A late event changes nothing in the session: newer events have been applied.
        let claim = self.claim(wanted.choose).filter(|_| !is_late);
        let agent = self.agent.id.as_str();
        let claimed = match claim {
            Some(claim) => inbox::claim(transaction, agent, &claim, &self.stamp)?,
            None => None,
        };
        let held = wanted.holds_turn && claimed.is_some();
        // A turn that is held back has not ended: the agent goes on.
        let goes_on = [Signal::state(Authority::Hook, AgentState::Working)];
        let mut update = self.signals_at(time.mono);
        if held {
            update.signals = &goes_on;
        }
        if let Some(taken) = &self.taken {
            for call in self.signals.iter().filter_map(|signal| signal.call.as_deref()) {
                prompt::note_taken(transaction, &self.agent.id, call, taken)?;
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

/// What a file of the spool holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SpooledEvent {
    pub(super) version: u32,
    pub(super) event: AgentEvent,
}

/// The version of the files. One of a newer version is left for that version to apply.
pub(super) const VERSION: u32 = 1;
