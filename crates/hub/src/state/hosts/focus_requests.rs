//! Brings the person to a place, and reports the result.

use ringer_core::attention::Record;
use ringer_core::message::{Place, SurfaceId};
use ringer_core::{MessageId, Now};
use ringer_ipc::part::Unreachable;
use serde_json::Value;

use super::surfaces::{FocusOutcome, FocusTarget};
use crate::hosts::protocol::{ConnectionId, HostOrder, SentOrder};
use crate::message::{Action, Answer, FocusWaiter, Job};
use crate::state::HubState;
use crate::state::methods::method::{Handled, Result, TargetParams, unavailable};
use crate::view;

/// The name of the host that brought the place to the front, or the reason why none did.
type Focused = std::result::Result<String, Unreachable>;

impl HubState {
    /// Focuses a place, after the surfaces around it from the outside in. The results of the surrounding ones are ignored.
    pub(in crate::state) fn focus(&mut self, place: &Place) -> FocusOutcome {
        let around = place.surface.as_ref().map(|surface| self.surfaces.around(surface)).unwrap_or_default();
        for outer in around.into_iter().rev() {
            let outer = Place::surface(place.workspace.clone(), outer);
            if let FocusOutcome::Ask(target, surface) = self.surfaces.focus(&outer) {
                match target {
                    FocusTarget::Host(host) => self.order_focus(host, surface),
                    FocusTarget::PaneControl => self.execute(Job::FocusPane { surface, waiter: None }),
                }
            }
        }
        self.surfaces.focus(place)
    }

    /// Handles a request to focus a surface.
    pub(in crate::state) fn focus_surface(&mut self, target: &TargetParams) -> Result<Handled> {
        let place = self.place(target)?;
        Ok(match self.focus(&place) {
            FocusOutcome::Known(result) => Handled::after_ingest(|_, _| view::focus(result)),
            FocusOutcome::Ask(target, surface) => Handled::AfterFocus { target, surface, opening: None },
        })
    }

    /// Focuses the place of a notification, which is marked as read once the person is there.
    pub(in crate::state) fn open(&mut self, now: Now, id: &MessageId) -> Result<Handled> {
        self.open_after(now, id, None)
    }

    /// Opens the most urgent unread notification whose place is reachable. If there is none, opens the most urgent one, and the
    /// answer has the reason why it is not reachable.
    pub(in crate::state) fn jump_to_unread(&mut self, now: Now) -> Result<Handled> {
        let mut reachable = self.surfaces.reachable();
        let unread = || self.notifications.list().newest_unread();
        let first = Record::most_urgent_unread(unread());
        // Usually the most urgent one is reachable.
        let next = first
            .filter(|record| reachable.has(&record.place))
            .or_else(|| Record::most_urgent_unread(unread().filter(|record| reachable.has(&record.place))));
        let Some(record) = next.or(first) else {
            return Ok(Handled::after_ingest(|_, _| Value::Null));
        };
        let passed_over = unread().filter(|other| other.by_urgency(record).is_lt()).count();
        let id = record.id.clone();
        self.open_after(now, &id, Some(passed_over))
    }

    fn open_after(&mut self, now: Now, id: &MessageId, passed_over: Option<usize>) -> Result<Handled> {
        let record = self.record(id)?;
        let opening = view::opening(&self.notifications.view(&record, &self.clock), passed_over);
        Ok(match self.focus(&record.place) {
            FocusOutcome::Known(result) => {
                let opened = self.opened(now, (id, &opening), result)?;
                Handled::after_ingest(|_, _| opened)
            }
            FocusOutcome::Ask(target, surface) => {
                Handled::AfterFocus { target, surface, opening: Some((id.clone(), opening)) }
            }
        })
    }

    /// Returns the answer to a client that opened a notification, which is marked as read only if the person got there.
    fn opened(&mut self, now: Now, (id, opening): (&MessageId, &Value), result: Focused) -> Result<Value> {
        if result.is_ok() {
            // The mark is queued if it cannot be written now, because the person is there.
            self.append_read_mark(now, id).map_err(|error| unavailable(&error))?;
        }
        Ok(view::opened(opening, &view::focus(result)))
    }

    /// Asks a host or a part to focus a surface, and passes the result to the waiter.
    pub(in crate::state) fn ask_focus(
        &mut self,
        now: Now,
        target: FocusTarget,
        surface: SurfaceId,
        waiter: FocusWaiter,
    ) {
        match target {
            FocusTarget::Host(host) => {
                self.order_focus(host, surface.clone());
                self.host_focus.add(host, surface, waiter, now.mono);
            }
            FocusTarget::PaneControl => self.execute(Job::FocusPane { surface, waiter: Some(waiter) }),
        }
    }

    fn order_focus(&mut self, host: ConnectionId, surface_id: SurfaceId) {
        self.tell_hosts([SentOrder { host, order: HostOrder::Focus { surface_id } }]);
    }

    /// Fails the focus requests of a host that is gone.
    pub(in crate::state) fn end_focus_of(&mut self, now: Now, host: ConnectionId) {
        let waiting = self.host_focus.gone(host);
        self.answer_focus_waiters(
            now,
            waiting,
            &Err(Unreachable::new("the program that shows it has ended")),
        );
    }

    /// Fails the focus requests that have waited too long.
    pub(in crate::state) fn end_late_focus(&mut self, now: Now) {
        let waiting = self.host_focus.expired(now.mono);
        self.answer_focus_waiters(
            now,
            waiting,
            &Err(Unreachable::new("the program that shows it does not answer")),
        );
    }

    /// Passes the result to everything that waited for it.
    pub(in crate::state) fn answer_focus_waiters(
        &mut self,
        now: Now,
        waiting: impl IntoIterator<Item = FocusWaiter>,
        result: &Focused,
    ) {
        for waiter in waiting {
            match waiter {
                FocusWaiter::Popup(id) => self.focus_tried(now, &id, result.clone().map(drop)),
                FocusWaiter::Request { id, up_to, opening } => {
                    let answer = match &opening {
                        Some((opened, opening)) => self.opened(now, (opened, opening), result.clone()),
                        None => Ok(view::focus(result.clone())),
                    };
                    let behind = self.unread_up_to(up_to);
                    self.act(Action::Answer { id, answer: Answer::Value(answer), behind });
                }
            }
        }
    }
}
