//! Arriving: which surface rang, is it news, and its place in the queue.

use std::collections::HashSet;
use std::sync::Arc;

use super::hear::BELL;
use super::{Candidate, Engine, MAX_WITH_HOOKS};
use crate::address::Recipient;
use crate::bus::Displaced;
use crate::duplicate::{Report, Verdict};
use crate::kind::{Mark, Tag};
use crate::mark::Target;
use crate::now::Now;
use crate::order::{Event, Incoming, Order};
use crate::surface::Place;

impl Engine {
    pub(super) fn arrive(&mut self, now: Now, incoming: Incoming, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Notice(kind) = draft.tag else { return self.apply_mark(now, &incoming, orders) };
        let id = incoming.message.id.clone();
        if !incoming.message.is_current(now.wall_ms) {
            return orders.push(Order::Trail { id, text: "it was out of date when it arrived".to_owned() });
        }
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            let text = format!("it is for {}, and not for the person", draft.recipient);
            return orders.push(Order::Trail { id, text });
        }
        let (place, how) = match self.surfaces.resolve(&incoming.caller) {
            Some(resolved) => (resolved.place, resolved.how),
            None => (
                Place::own_workspace(draft.scope.as_str()),
                "nothing said where, so its repository's workspace",
            ),
        };
        let mut steps = vec![format!("arrived from {}; {how}", draft.sender)];
        let report = Report {
            id: Some(id.clone()),
            title: draft.title.clone(),
            body: draft.body.clone(),
            is_bell: draft.category.as_deref() == Some(BELL),
            kind: Some(kind),
            has_question: draft.question_id.is_some(),
        };
        let replaces = match self.window.hear(now.mono, &place, report) {
            Verdict::New | Verdict::Replaces { older: None } => None,
            Verdict::Absorbed { by } => {
                let by = by.map_or_else(|| "what its terminal told".to_owned(), |by| by.to_string());
                return orders
                    .push(Order::Trail { id, text: format!("the same event as {by}, which says as much") });
            }
            Verdict::Replaces { older: Some(older) } => {
                steps.push(format!("the same event as {older}, and says more: takes its place"));
                Some(older)
            }
        };
        let hooks = Arc::clone(&self.preferences.hooks);
        let displaced = self.bus.push(place, Candidate { incoming, replaces, steps, hooks }, &self.fence);
        if let Some((older, why)) = displaced {
            let text = match why {
                Displaced::ByNewer => {
                    format!("a newer one of the same surface, {id}, came before it was shown")
                }
                Displaced::ByMany => "too many waited to be decided: it was not shown".to_owned(),
            };
            orders.push(Order::Trail { id: older.incoming.message.id, text });
        }
    }

    /// Marks say what they are about by their key.
    fn apply_mark(&mut self, now: Now, incoming: &Incoming, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Mark(mark) = draft.tag else { return };
        let about = draft.key.as_deref().and_then(Target::parse);
        let event = match (mark, about) {
            (Mark::Read, Some(Target::Message(id))) => Event::Mark { id, read: true },
            (Mark::Read, Some(Target::Place(place))) => Event::Read(place),
            (Mark::Read, Some(Target::All)) => Event::ReadAll,
            (Mark::Unread, Some(Target::Message(id))) => Event::Mark { id, read: false },
            (Mark::Unread, Some(Target::Place(place))) => Event::MarkUnread(place),
            (Mark::Clear, Some(Target::Message(id))) => Event::Remove(id),
            (Mark::Clear, Some(Target::Place(place))) => Event::Clear(place),
            (Mark::Clear, Some(Target::All)) => Event::ClearAll,
            (Mark::Clear, Some(Target::AllRead)) => Event::RemoveRead,
            (Mark::Answer, _) => match &draft.question_id {
                Some(question) => Event::Answered(question.clone()),
                None => return,
            },
            // Of a newer version, perhaps: nothing here can be changed by it.
            _ => return,
        };
        self.take(now, event, orders);
    }

    /// Starts what can be started: in order within a surface, at most so many with the hooks at once.
    pub(super) fn drain(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut held: HashSet<Place> =
            self.with_hooks.values().map(|with| with.arrival.place.clone()).collect();
        let drained = self.bus.drain(|arrival| {
            let ready = held.len() < MAX_WITH_HOOKS && !held.contains(&arrival.place);
            if ready && !arrival.item.hooks.is_empty() {
                held.insert(arrival.place.clone());
            }
            ready
        });
        self.more = drained.more;
        for arrival in drained.arrivals {
            self.start(now, arrival, orders);
        }
    }
}
