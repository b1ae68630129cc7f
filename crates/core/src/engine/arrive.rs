//! Arriving: which surface rang, is it news, and its place in the queue.

use std::collections::VecDeque;

use super::{Candidate, Engine, MAX_WITH_HOOKS};
use crate::duplicate::{Report, Verdict};
use crate::id::MessageId;
use crate::kind::{Mark, Tag};
use crate::now::Now;
use crate::order::{Event, Incoming, Order};
use crate::surface::{Place, WorkspaceId};

impl Engine {
    pub(super) fn arrive(&mut self, now: Now, incoming: Incoming, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Notice(kind) = draft.tag else { return self.apply_mark(now, &incoming, orders) };
        let id = incoming.message.id.clone();
        if !incoming.message.is_current(now.wall_ms) {
            return orders.push(Order::Trail { id, text: "it was out of date when it arrived".to_owned() });
        }
        let (place, how) = match self.surfaces.resolve(&incoming.caller) {
            Some(resolved) => (resolved.place, resolved.how),
            None => {
                (own_workspace(draft.scope.as_str()), "nothing said where, so its repository's workspace")
            }
        };
        let mut steps = vec![format!("arrived from {}; {how}", draft.sender)];
        let report = Report {
            id: id.clone(),
            title: draft.title.clone(),
            body: draft.body.clone(),
            kind: Some(kind),
            has_question: draft.question_id.is_some(),
        };
        let replaces = match self.window.hear(now.mono, &place, report) {
            Verdict::New => None,
            Verdict::Absorbed { by } => {
                return orders
                    .push(Order::Trail { id, text: format!("the same event as {by}, which says as much") });
            }
            Verdict::Replaces { older } => {
                steps.push(format!("the same event as {older}, and says more: takes its place"));
                Some(older)
            }
        };
        if let Some(older) = self.bus.push(place, Candidate { incoming, replaces, steps }, &self.fence) {
            let text = format!("a newer one of the same surface, {id}, came before it was shown");
            orders.push(Order::Trail { id: older.incoming.message.id, text });
        }
    }

    /// Marks name what they are about by the key: the id of the message that was read or cleared.
    fn apply_mark(&mut self, now: Now, incoming: &Incoming, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let about = draft.key.as_deref().and_then(|id| MessageId::parse(id).ok());
        match (draft.tag, about, &draft.question_id) {
            (Tag::Mark(Mark::Read), Some(id), _) => self.take(now, Event::Mark { id, read: true }, orders),
            (Tag::Mark(Mark::Clear), Some(id), _) => self.take(now, Event::Remove(id), orders),
            (Tag::Mark(Mark::Answer), _, Some(question)) => {
                self.take(now, Event::Answered(question.clone()), orders);
            }
            _ => {}
        }
    }

    pub(super) fn drain(&mut self, now: Now, orders: &mut Vec<Order>) {
        self.backlog.extend(self.bus.drain().arrivals);
        self.start_backlog(now, orders);
    }

    /// Starts what can be started: in order within a surface, at most so many at once.
    pub(super) fn start_backlog(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut waiting = VecDeque::new();
        let mut held: Vec<Place> = self.with_hooks.values().map(|with| with.arrival.place.clone()).collect();
        while let Some(arrival) = self.backlog.pop_front() {
            if self.with_hooks.len() >= MAX_WITH_HOOKS || held.contains(&arrival.place) {
                held.push(arrival.place.clone());
                waiting.push_back(arrival);
            } else {
                let place = arrival.place.clone();
                self.start(now, arrival, orders);
                if self.with_hooks.values().any(|with| with.arrival.place == place) {
                    held.push(place);
                }
            }
        }
        self.backlog = waiting;
    }
}

/// The workspace of what rings nowhere in particular: one for each repository.
fn own_workspace(scope: &str) -> Place {
    Place::workspace(WorkspaceId::new(&format!("repo:{scope}")))
}
