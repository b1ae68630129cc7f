//! Handles requests of attached hosts.

use ringer_core::Now;
use ringer_core::message::SurfaceId;
use ringer_ipc::ApiError;
use serde_json::json;

use super::surfaces::AfterHost;
use crate::hosts::protocol::{ConnectionId, HostOrder, HostRequest};
use crate::hosts::tmux::Unreachable;
use crate::message::Answer;
use crate::state::HubState;
use crate::state::handlers::{Handled, value};

impl HubState {
    pub(in crate::state) fn host_request(
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
                Err(unreachable) => {
                    Err(Unreachable { why: format!("{name}: {}", unreachable.why), ..unreachable.clone() })
                }
            };
            self.end_focus(now, waiting, &result);
        }
        let attaches = matches!(request, HostRequest::Attach { .. });
        let opened: Vec<SurfaceId> = match &request {
            HostRequest::Opened(surfaces) => {
                surfaces.iter().map(|params| SurfaceId::new(&params.surface_id)).collect()
            }
            _ => Vec::new(),
        };
        let after = self.surfaces.handle_host(host, request)?;
        self.after_host(now, after);
        // The ring may be older than the host, or a host may still show a ring that ended while the hub was away. Another host of
        // the surface stops showing the ring if this one does.
        for surface in opened {
            let lit = self.notifications.engine().lit_rings();
            let orders = self.surfaces.ring_orders(&surface, Some(host), lit);
            self.tell_hosts(orders);
        }
        if attaches {
            return Ok(Handled::Done(Answer::Attach { host, orders: self.first_orders() }));
        }
        Ok(value(json!({})))
    }

    /// Applies the effects of a host's request, or of its end.
    pub(in crate::state) fn after_host(&mut self, now: Now, after: AfterHost) {
        for event in after.events {
            self.decide(now, event);
        }
        for outer in &after.around {
            self.agents.heard_from(outer);
        }
        self.tell_rings(after.around);
    }

    /// Returns the orders for a new host: the indicators and the toast.
    fn first_orders(&self) -> Vec<HostOrder> {
        let indicators = self
            .indicators
            .iter()
            .map(|(key, text)| HostOrder::Indicator { key: key.clone(), text: text.clone() });
        let toast = self.host_toast().map(|toast| HostOrder::toast(Some(&toast)));
        indicators.chain(toast).collect()
    }
}
