//! Arriving messages: find the surface, drop duplicates, put the message into the queue.

use std::collections::HashSet;
use std::sync::Arc;

use super::terminal_signals::BELL_CATEGORY;
use super::{Candidate, Engine, MAX_HOOK_CHAINS};
use crate::arrival::{Displaced, DuplicateVerdict, EventReport};
use crate::attention::MarkTarget;
use crate::engine::{Event, IncomingMessage, Order};
use crate::message::{Mark, Place, Recipient, Tag};
use crate::time::Now;

impl Engine {
    pub(super) fn arrive(&mut self, now: Now, incoming: IncomingMessage, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Notice(kind) = draft.tag else { return self.apply_mark(now, &incoming, orders) };
        let id = incoming.message.id.clone();
        if !incoming.message.is_current(now.wall_ms) {
            return orders.push(Order::AddTrailStep { id, text: "expired before it arrived".to_owned() });
        }
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            let text = format!("addressed to {}, so it is not shown to you", draft.recipient);
            return orders.push(Order::AddTrailStep { id, text });
        }
        let (place, how) = match self.surfaces.resolve(&incoming.caller) {
            Some(resolved) => (resolved.place, resolved.how),
            None => (
                Place::own_workspace(draft.scope.as_str()),
                "no terminal or workspace given, so it belongs to its repository's workspace",
            ),
        };
        let mut steps = vec![format!("received from {}; {how}", draft.sender)];
        let report = EventReport {
            id: Some(id.clone()),
            title: draft.title.clone(),
            body: draft.body.clone(),
            is_bell: draft.category.as_deref() == Some(BELL_CATEGORY),
            kind: Some(kind),
            has_question: draft.question_id.is_some(),
        };
        let replaces = match self.window.observe(now.mono, &place, report) {
            DuplicateVerdict::New | DuplicateVerdict::Replaces { older: None } => None,
            DuplicateVerdict::Duplicate { of } => {
                let of = of.map_or_else(|| "its terminal's notification".to_owned(), |of| of.to_string());
                return orders
                    .push(Order::AddTrailStep { id, text: format!("duplicate of {of}: not shown again") });
            }
            DuplicateVerdict::Replaces { older: Some(older) } => {
                steps.push(format!("same event as {older} with more detail: replaces it"));
                Some(older)
            }
        };
        let hooks = Arc::clone(&self.preferences.hooks);
        let displaced = self.queue.push(place, Candidate { incoming, replaces, steps, hooks }, &self.fence);
        if let Some((older, why)) = displaced {
            let text = match why {
                Displaced::ByNewer => {
                    format!("replaced by a newer notification of the same surface, {id}, before it was shown")
                }
                Displaced::QueueFull => "not shown: too many notifications were waiting".to_owned(),
            };
            orders.push(Order::AddTrailStep { id: older.incoming.message.id, text });
        }
    }

    /// Applies a mark. The key of its message names the target.
    fn apply_mark(&mut self, now: Now, incoming: &IncomingMessage, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Mark(mark) = draft.tag else { return };
        let about = draft.key.as_deref().and_then(MarkTarget::parse);
        let event = match (mark, about) {
            (Mark::Read, Some(MarkTarget::Message(id))) => Event::Mark { id, read: true },
            (Mark::Read, Some(MarkTarget::Place(place))) => Event::Read(place),
            (Mark::Read, Some(MarkTarget::All)) => Event::ReadAll,
            (Mark::Unread, Some(MarkTarget::Message(id))) => Event::Mark { id, read: false },
            (Mark::Unread, Some(MarkTarget::Place(place))) => Event::MarkUnread(place),
            (Mark::Clear, Some(MarkTarget::Message(id))) => Event::Remove(id),
            (Mark::Clear, Some(MarkTarget::Place(place))) => Event::Clear(place),
            (Mark::Clear, Some(MarkTarget::All)) => Event::ClearAll,
            (Mark::Clear, Some(MarkTarget::AllRead)) => Event::RemoveRead,
            (Mark::Answer, _) => match &draft.question_id {
                Some(question) => Event::Answered(question.clone()),
                None => return,
            },
            // A mark of a newer version, which this version cannot apply.
            _ => return,
        };
        self.handle_event(now, event, orders);
    }

    /// Starts the hooks of queued messages: one message of a surface at a time, and at most [`MAX_HOOK_CHAINS`] at once.
    pub(super) fn drain(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut busy: HashSet<Place> =
            self.hook_chains.values().map(|running| running.arrival.place.clone()).collect();
        let drained = self.queue.drain(|arrival| {
            let ready = busy.len() < MAX_HOOK_CHAINS && !busy.contains(&arrival.place);
            if ready && !arrival.item.hooks.is_empty() {
                busy.insert(arrival.place.clone());
            }
            ready
        });
        self.more_to_drain = drained.more;
        for arrival in drained.arrivals {
            self.start_hooks(now, arrival, orders);
        }
    }
}
