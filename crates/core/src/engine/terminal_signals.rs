//! Signals that terminals send about a surface, before they are messages in the journal.
//!
//! A terminal reports the same event as a hook does, a moment earlier or later and with less detail. Where the agent on a
//! surface reports by hooks, a signal of its terminal is therefore delayed by [`DUPLICATE_WINDOW`], so that the hook's
//! report comes first. On every other surface it is accepted at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Engine;
use crate::address::Agent;
use crate::duplicate::{DUPLICATE_WINDOW, DuplicateVerdict, EventReport};
use crate::now::Now;
use crate::order::{Order, TerminalSignal};
use crate::signal::{Authority, Signal, SignalContent};
use crate::surface::{Place, SurfaceId};

/// The category of a notification that was only a bell.
pub(super) const BELL_CATEGORY: &str = "bell";
/// The text of such a notification.
const BELL_TEXT: &str = "the terminal bell rang";
/// How many signals may be delayed at once. At the limit the oldest is accepted early. The limit only bounds memory
/// when a terminal sends a flood.
const MAX_DELAYED: usize = 1024;

#[derive(Debug, Clone)]
struct DelayedSignal {
    received_at: Duration,
    surface: SurfaceId,
    signal: TerminalSignal,
}

/// The agent of each surface, and the signals that are delayed.
#[derive(Debug, Clone, Default)]
pub(super) struct TerminalSignals {
    /// The flag says whether the agent reports by hooks.
    agents: HashMap<SurfaceId, (Agent, bool)>,
    delayed: VecDeque<DelayedSignal>,
}

impl TerminalSignals {
    pub(super) fn set_agent(&mut self, surface: &SurfaceId, agent: Option<(Agent, bool)>) {
        match agent {
            Some(agent) => _ = self.agents.insert(surface.clone(), agent),
            None => _ = self.agents.remove(surface),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.delayed.front().map(|delayed| delayed.received_at + DUPLICATE_WINDOW)
    }

    /// Removes the next signal whose delay is over, or the oldest one if there are too many.
    fn pop_due(&mut self, now: Duration) -> Option<DelayedSignal> {
        let due = self.next_deadline().is_some_and(|deadline| deadline <= now);
        if due || self.delayed.len() > MAX_DELAYED { self.delayed.pop_front() } else { None }
    }
}

impl Engine {
    pub(super) fn terminal_signal(
        &mut self,
        now: Now,
        surface: SurfaceId,
        signal: TerminalSignal,
        orders: &mut Vec<Order>,
    ) {
        let received = DelayedSignal { received_at: now.mono, surface, signal };
        if matches!(self.terminal_signals.agents.get(&received.surface), Some((_, true))) {
            self.terminal_signals.delayed.push_back(received);
            self.accept_due(now, orders);
        } else {
            self.accept(received, orders);
        }
    }

    /// Accepts every signal whose delay is over.
    pub(super) fn accept_due(&mut self, now: Now, orders: &mut Vec<Order>) {
        while let Some(delayed) = self.terminal_signals.pop_due(now.mono) {
            self.accept(delayed, orders);
        }
    }

    fn accept(&mut self, received: DelayedSignal, orders: &mut Vec<Order>) {
        let DelayedSignal { received_at, surface, signal } = received;
        let agent = self.terminal_signals.agents.get(&surface).map(|(agent, _)| agent.clone());
        let (title, body, is_bell) = match signal {
            TerminalSignal::Agent(signal) => {
                return orders.push(Order::ApplySignal { surface, agent, signal });
            }
            TerminalSignal::Bell => (None, BELL_TEXT.to_owned(), true),
            TerminalSignal::Notified { title, body } => (title, body, false),
        };
        // A surface that no host has registered is in no workspace; duplicates are not looked for there.
        if let Some(workspace) = self.surfaces.workspace_of(&surface) {
            let place = Place::surface(workspace.clone(), surface.clone());
            let (title, body) = (title.clone(), body.clone());
            let report = EventReport { id: None, title, body, is_bell, kind: None, has_question: false };
            if let DuplicateVerdict::Duplicate { .. } = self.window.observe(received_at, &place, report) {
                return;
            }
        }
        if agent.is_some() {
            // The agent's state machine decides: a client sends its notification seconds after the event it is about.
            let text = (!is_bell).then(|| title.map_or(body.clone(), |title| format!("{title}: {body}")));
            let signal = Signal {
                authority: Authority::Notification,
                content: SignalContent::Notified,
                text,
                pending: false,
            };
            orders.push(Order::ApplySignal { surface, agent, signal });
        } else {
            let category = is_bell.then_some(BELL_CATEGORY);
            orders.push(Order::AppendToJournal { surface, title, body, category });
        }
    }
}
