//! What hosts on the socket ask for.

use ringer_core::Now;
use ringer_core::message::SurfaceId;
use ringer_ipc::ApiError;
use serde_json::json;

use super::HubState;
use super::handlers::{Handled, value};
use super::host_focus::FocusWaiter;
use crate::host_order::{HostOrder, SentOrder};
use crate::host_request::HostRequest;
use crate::message::{Action, Answer};
use crate::request::ConnectionId;
use crate::tmux::Unreachable;
use crate::view;

impl HubState {
    pub(super) fn host_request(
        &mut self,
        now: Now,
        host: ConnectionId,
        request: HostRequest,
    ) -> Result<Handled, ApiError> {
        if let HostRequest::Focused { surface_id, result } = &request {
            let waiting = self.host_focus.answered(host, &SurfaceId::new(surface_id));
            let name = self.surfaces.host_name(host);
            let result = match result {
                Ok(()) => Ok(name),
                Err(why) => Err(Unreachable::new(format!("{name} says: {why}"))),
            };
            self.end_focus(now, waiting, &result);
        }
        let attaches = matches!(request, HostRequest::Attach { .. });
        let opened = match &request {
            HostRequest::Opened(surfaces) => {
                surfaces.iter().map(|params| SurfaceId::new(&params.surface_id)).collect()
            }
            _ => Vec::new(),
        };
        for event in self.surfaces.handle_host(host, request)? {
            self.decide(now, event);
        }
        if attaches {
            return Ok(Handled::Done(Answer::Attach { host, orders: self.first_orders() }));
        }
        for surface in opened {
            // What rang before its host came; also that nothing does, for a host that kept a ring while the hub was away.
            let ring = self.notifications.engine().ring_of(&surface);
            self.tell_hosts([SentOrder { host, order: HostOrder::ring(&surface, ring) }]);
        }
        Ok(value(json!({})))
    }

    /// Asks a host to go to one of its surfaces.
    pub(super) fn ask_host(&mut self, now: Now, host: ConnectionId, surface: SurfaceId, waiter: FocusWaiter) {
        self.tell_hosts([SentOrder { host, order: HostOrder::Focus { surface_id: surface.clone() } }]);
        self.host_focus.add(host, surface, waiter, now.mono);
    }

    /// A host is gone: it goes nowhere any more.
    pub(super) fn end_focus_of(&mut self, now: Now, host: ConnectionId) {
        let waiting = self.host_focus.gone(host);
        self.end_focus(now, waiting, &Err(Unreachable::new("the program that shows it has ended")));
    }

    /// Ends what has waited too long for a host.
    pub(super) fn end_late_focus(&mut self, now: Now) {
        let waiting = self.host_focus.expired(now.mono);
        self.end_focus(now, waiting, &Err(Unreachable::new("the program that shows it does not answer")));
    }

    fn end_focus(&mut self, now: Now, waiting: Vec<FocusWaiter>, result: &Result<String, Unreachable>) {
        for waiter in waiting {
            match waiter {
                FocusWaiter::Popup(id) => self.focus_tried(now, &id, result.clone().map(drop)),
                FocusWaiter::Request { id, up_to, notification } => {
                    let answer = match &notification {
                        Some((opened, view)) => self.opened(now, (opened, view), result.clone()),
                        None => Ok(view::focus(result.clone())),
                    };
                    let behind = self.unread_up_to(up_to);
                    self.act(Action::Answer { id, answer: Answer::Value(answer), behind });
                }
            }
        }
    }

    /// What a new host has to show.
    fn first_orders(&self) -> Vec<HostOrder> {
        let indicators = self
            .indicators
            .iter()
            .map(|(key, text)| HostOrder::Indicator { key: key.clone(), text: text.clone() });
        let toast = self.notifications.engine().toast().map(|toast| HostOrder::toast(Some(toast)));
        indicators.chain(toast).collect()
    }
}
