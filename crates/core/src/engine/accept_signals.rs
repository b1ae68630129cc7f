//! Accepts signals of terminals: each becomes a signal for an agent's state machine, or a message.

use super::Engine;
use super::terminal_signals::{BELL_CATEGORY, DelayedSignal};
use crate::agent::{Authority, Signal, SignalContent, client_notification};
use crate::arrival::{DuplicateVerdict, EventReport};
use crate::engine::{Order, TerminalSignal};
use crate::message::{MessageId, Place, SurfaceId};
use crate::time::Now;

/// The text of a notification that was only a bell.
const BELL_TEXT: &str = "the terminal bell rang";

impl Engine {
    pub(super) fn terminal_signal(
        &mut self,
        now: Now,
        surface: SurfaceId,
        signal: TerminalSignal,
        report: Option<MessageId>,
        orders: &mut Vec<Order>,
    ) {
        let received = DelayedSignal { received_at: now.mono, surface, signal, report };
        match self.terminal_signals.delay(received) {
            Some(received) => self.accept(received, orders),
            None => self.accept_due(now, orders),
        }
    }

    /// Accepts every signal whose delay is over.
    pub(super) fn accept_due(&mut self, now: Now, orders: &mut Vec<Order>) {
        while let Some(delayed) = self.terminal_signals.pop_due(now.mono) {
            self.accept(delayed, orders);
        }
    }

    fn accept(&mut self, received: DelayedSignal, orders: &mut Vec<Order>) {
        let DelayedSignal { received_at, surface, signal, report } = received;
        let (agent, by_hooks) = self.terminal_signals.agent_on(&surface).cloned().unzip();
        let (mut id, mut ttl_ms) = (None, None);
        let (title, body, kind, is_bell) = match signal {
            TerminalSignal::Agent(signal) => {
                return orders.push(Order::ApplySignal { surface, agent, signal });
            }
            TerminalSignal::Withdrawn { id } => {
                return orders.push(Order::WithdrawFromTerminal { surface, id, report });
            }
            TerminalSignal::Bell => (None, BELL_TEXT.to_owned(), None, true),
            TerminalSignal::Notified { title, body, kind, id: own, ttl_ms: ttl } => {
                (id, ttl_ms) = (own, ttl);
                (title, body, kind, false)
            }
        };
        // A surface that no host has registered has no workspace; its signals are not checked for duplicates.
        if let Some(workspace) = self.surfaces.workspace_of(&surface) {
            let place = Place::surface(workspace.clone(), surface.clone());
            // As in the message: a title without a body becomes the text.
            let (title, body) = match &title {
                Some(title) if body.trim().is_empty() => (None, title.clone()),
                title => (title.clone(), body.clone()),
            };
            let report =
                EventReport { id: None, title, body, is_bell, kind, has_question: false, episode: None };
            if let DuplicateVerdict::Duplicate { .. } = self.window.observe(received_at, &place, report) {
                return;
            }
        }
        if agent.is_some() {
            // The agent's state machine decides: a client sends its notification seconds after the event it is about.
            let mut signal = if is_bell {
                Signal::new(Authority::Notification, SignalContent::Notified)
            } else {
                client_notification(title.as_deref(), &body)
            };
            // By then its hooks have reported the state in more detail, and their last report may be newer.
            if by_hooks == Some(true) {
                signal.content = SignalContent::Notified;
            }
            signal.kind = kind;
            orders.push(Order::ApplySignal { surface, agent, signal });
        } else {
            let category = is_bell.then(|| BELL_CATEGORY.to_owned());
            let kind = kind.unwrap_or_default();
            orders.push(Order::AppendToJournal { surface, title, body, kind, category, report, id, ttl_ms });
        }
    }
}
