//! Signals that terminals send about a surface, before they become messages in the journal.
//!
//! A terminal reports the same event as a hook, a moment earlier or later and with less detail. If the agent on a surface
//! reports by hooks, a signal of its terminal is therefore delayed by [`DUPLICATE_WINDOW`], so that the hook's report comes
//! first. So is every bell, which often comes before the sequence that says why it rang. Everything else is accepted at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::arrival::{DUPLICATE_WINDOW, MAX_SURFACES};
use crate::engine::TerminalSignal;
use crate::message::{Agent, MessageId, SurfaceId};

/// The category of a notification that was only a bell.
pub(super) const BELL_CATEGORY: &str = "bell";
/// The most signals that are delayed at once. At the limit the oldest is accepted early. The limit only bounds memory when a
/// terminal sends a flood.
const MAX_DELAYED: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct DelayedSignal {
    pub(super) received_at: Duration,
    pub(super) surface: SurfaceId,
    pub(super) signal: TerminalSignal,
    /// The id of the message that the signal may become.
    pub(super) report: Option<MessageId>,
}

/// The agent of each surface, and the signals that are delayed.
#[derive(Debug, Clone, Default)]
pub(super) struct TerminalSignals {
    /// The flag is true if the agent reports by hooks.
    agents: HashMap<SurfaceId, (Agent, bool)>,
    delayed: VecDeque<DelayedSignal>,
}

impl TerminalSignals {
    pub(super) fn set_agent(&mut self, surface: &SurfaceId, agent: Option<(Agent, bool)>) {
        match agent {
            // The agent's own reports still arrive; only the signals of its terminal are not delayed then.
            Some(_) if self.agents.len() >= MAX_SURFACES && !self.agents.contains_key(surface) => {}
            Some(agent) => _ = self.agents.insert(surface.clone(), agent),
            None => _ = self.agents.remove(surface),
        }
    }

    /// Returns the agent of a surface, and true if it reports by hooks.
    pub(super) fn agent_on(&self, surface: &SurfaceId) -> Option<&(Agent, bool)> {
        self.agents.get(surface)
    }

    /// Delays a signal if it is a bell or the agent of its surface reports by hooks. Otherwise returns it.
    pub(super) fn delay(&mut self, received: DelayedSignal) -> Option<DelayedSignal> {
        let has_hooks = matches!(self.agents.get(&received.surface), Some((_, true)));
        if !has_hooks && received.signal != TerminalSignal::Bell {
            return Some(received);
        }
        self.delayed.push_back(received);
        None
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.delayed.front().map(|delayed| delayed.received_at + DUPLICATE_WINDOW)
    }

    /// Removes and returns the next signal whose delay is over, or the oldest one if there are too many.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<DelayedSignal> {
        let due = self.next_deadline().is_some_and(|deadline| deadline <= now);
        if due || self.delayed.len() > MAX_DELAYED { self.delayed.pop_front() } else { None }
    }
}
