//! Hearing: what terminals tell, before it is a message, and perhaps instead of one.
//!
//! A terminal tells the same event as a hook does, a moment earlier or later, and in poorer words. Where the agent on a
//! surface reports by hooks, what its terminal tells therefore waits out the moment; elsewhere it counts at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Engine;
use crate::address::Agent;
use crate::duplicate::{Report, Verdict, WINDOW};
use crate::now::Now;
use crate::order::{Order, Sign};
use crate::signal::{Authority, Says, Signal};
use crate::surface::{Place, SurfaceId};

/// The category of a notification that was only a bell.
pub(super) const BELL: &str = "bell";
/// What such a notification says.
const BELL_TEXT: &str = "the terminal bell rang";
/// Signs that may wait for their moment to pass. One more, and the oldest counts at once.
const MAX_HELD: usize = 1024;

#[derive(Debug, Clone)]
struct Held {
    at: Duration,
    surface: SurfaceId,
    sign: Sign,
}

/// Which agents are on which surfaces, and what waits to be believed.
#[derive(Debug, Clone, Default)]
pub(super) struct Hearing {
    agents: HashMap<SurfaceId, (Agent, bool)>,
    held: VecDeque<Held>,
}

impl Hearing {
    pub(super) fn set_agent(&mut self, surface: &SurfaceId, agent: Option<(Agent, bool)>) {
        match agent {
            Some(agent) => _ = self.agents.insert(surface.clone(), agent),
            None => _ = self.agents.remove(surface),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.held.front().map(|held| held.at + WINDOW)
    }

    /// The next sign whose moment is over, or for which there is no room.
    fn release(&mut self, now: Duration) -> Option<Held> {
        let due = self.next_deadline().is_some_and(|deadline| deadline <= now);
        if due || self.held.len() > MAX_HELD { self.held.pop_front() } else { None }
    }
}

impl Engine {
    pub(super) fn hear(&mut self, now: Now, surface: SurfaceId, sign: Sign, orders: &mut Vec<Order>) {
        if matches!(self.hearing.agents.get(&surface), Some((_, true))) {
            self.hearing.held.push_back(Held { at: now.mono, surface, sign });
            self.release(now, orders);
        } else {
            self.believe(Held { at: now.mono, surface, sign }, orders);
        }
    }

    /// Lets everything count whose moment is over.
    pub(super) fn release(&mut self, now: Now, orders: &mut Vec<Order>) {
        while let Some(held) = self.hearing.release(now.mono) {
            self.believe(held, orders);
        }
    }

    fn believe(&mut self, held: Held, orders: &mut Vec<Order>) {
        let Held { at, surface, sign } = held;
        let agent = self.hearing.agents.get(&surface).map(|(agent, _)| agent.clone());
        let (title, body, is_bell) = match sign {
            Sign::Agent(signal) => return orders.push(Order::Apply { surface, agent, signal }),
            Sign::Bell => (None, BELL_TEXT.to_owned(), true),
            Sign::Notified { title, body } => (title, body, false),
        };
        // A surface that no host has named is in no workspace; nothing can be a duplicate there.
        if let Some(workspace) = self.surfaces.workspace_of(&surface) {
            let place = Place::surface(workspace.clone(), surface.clone());
            let (title, body) = (title.clone(), body.clone());
            let report = Report { id: None, title, body, is_bell, kind: None, has_question: false };
            if let Verdict::Absorbed { .. } = self.window.hear(at, &place, report) {
                return;
            }
        }
        if agent.is_some() {
            // Its episode decides: a client's notification comes seconds after what it is about.
            let text = (!is_bell).then(|| title.map_or(body.clone(), |title| format!("{title}: {body}")));
            let signal =
                Signal { authority: Authority::Notification, says: Says::Notified, text, pending: false };
            orders.push(Order::Apply { surface, agent, signal });
        } else {
            orders.push(Order::Append { surface, title, body, category: is_bell.then_some(BELL) });
        }
    }
}
