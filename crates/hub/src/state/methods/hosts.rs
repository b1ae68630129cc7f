//! The methods of attached hosts.

use ringer_core::Now;
use ringer_core::message::SurfaceId;
use ringer_ipc::ApiError;
use ringer_ipc::part::{PartEvent, Unreachable};
use serde::Deserialize;
use serde_json::Value;

use super::method::{Call, Handled, Method, NoParams, one_or_several};
use crate::hosts::protocol::{HOST_PROTOCOL, HostAbilities, HostOrder, HostRequest, ViewsParams, yes};
use crate::message::Answer;
use crate::state::HubState;
use crate::state::hosts::surfaces::AfterHost;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("host.attach", |hub, call, host: HostName| hub.host_request(call, host.request()?)),
        Method::new("surface.opened", HubState::surfaces_opened),
        Method::new("surface.changed", HubState::surfaces_opened),
        Method::new("surface.closed", |hub, call, SurfaceName { surface_id }| {
            hub.host_request(call, HostRequest::Closed { surface_id })
        }),
        Method::new("surface.views", |hub, call, params: ViewsParams| {
            hub.host_request(call, HostRequest::Views(params))
        }),
        Method::new("surface.glanced", |hub, call, SurfaceGlanced { surface_id, at_ms }| {
            hub.host_request(call, HostRequest::Glanced { surface_id, at_ms })
        }),
        Method::new("surface.typed", |hub, call, _: NoParams| hub.host_request(call, HostRequest::Typed)),
        Method::new("surface.unread", |hub, call, SurfaceUnread { surface_id, restored, report }| {
            hub.host_request(call, HostRequest::Unread { surface_id, is_restored: restored, report })
        }),
        Method::new("surface.focused", |hub, call, SurfaceFocused { surface_id, why, hint }| {
            let result = why.map_or(Ok(()), |why| Err(Unreachable { hint, ..Unreachable::new(why) }));
            hub.host_request(call, HostRequest::Focused { surface_id, result })
        }),
    ]
}

#[derive(Debug, Deserialize)]
struct HostName {
    name: String,
    #[serde(default = "first_version")]
    version: u32,
    /// The host obeys focus orders.
    #[serde(default)]
    can_focus: bool,
    /// If false, the hub marks the title of the host's terminals instead.
    #[serde(default = "yes")]
    draws_rings: bool,
    /// If true, notifications for the host's surfaces are written to the terminal around it.
    #[serde(default)]
    emulates: bool,
}

impl HostName {
    fn request(self) -> Result<HostRequest, ApiError> {
        let Self { name, version, can_focus, draws_rings, emulates } = self;
        if version != HOST_PROTOCOL {
            let why =
                format!("version {version} of the host protocol is unknown; this hub has {HOST_PROTOCOL}");
            return Err(ApiError::params(why));
        }
        Ok(HostRequest::Attach { name, abilities: HostAbilities { can_focus, draws_rings, emulates } })
    }
}

fn first_version() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
struct SurfaceName {
    surface_id: String,
}

#[derive(Debug, Deserialize)]
struct SurfaceGlanced {
    surface_id: String,
    /// Milliseconds since 1970.
    at_ms: i64,
}

#[derive(Debug, Deserialize)]
struct SurfaceUnread {
    surface_id: String,
    /// True if it was already unread in the earlier session; else something happened there.
    #[serde(default)]
    restored: bool,
    /// The id of this report, if the host may have to repeat it.
    report: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SurfaceFocused {
    surface_id: String,
    /// The reason why the host could not focus the surface. Missing on success.
    why: Option<String>,
    /// A command that helps the person.
    hint: Option<String>,
}

impl HubState {
    fn surfaces_opened(&mut self, call: Call, params: Value) -> Result<Handled, ApiError> {
        self.host_request(call, HostRequest::Opened(one_or_several(params, "surfaces")?))
    }

    fn host_request(&mut self, call: Call, request: HostRequest) -> Result<Handled, ApiError> {
        let Call { now, connection: host, .. } = call;
        if let HostRequest::Focused { surface_id, result } = &request {
            let waiting = self.host_focus.answered(host, &SurfaceId::new(surface_id));
            let name = self.surfaces.host_name(host);
            let result = match result {
                Ok(()) => Ok(name),
                Err(unreachable) => {
                    Err(Unreachable { why: format!("{name}: {}", unreachable.why), ..unreachable.clone() })
                }
            };
            self.answer_focus_waiters(now, waiting, &result);
        }
        if let HostRequest::Unread { report: Some(report), .. } = &request
            && !self.recent_reports.is_new(report)
        {
            return Ok(Handled::nothing());
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
        Ok(Handled::nothing())
    }

    /// Applies the effects of a host's request, or of its end.
    pub(in crate::state) fn after_host(&mut self, now: Now, after: AfterHost) {
        for event in after.events {
            self.feed_engine(now, event);
        }
        for outer in &after.around {
            self.parts.tell(PartEvent::SurfaceActive(outer));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_of_another_version_is_refused_and_told_which_there_is() {
        let attach = |params: Value| serde_json::from_value::<HostName>(params).unwrap().request();
        assert!(attach(json!({ "name": "mine" })).is_ok());
        assert!(attach(json!({ "name": "mine", "version": 1, "of a later one": true })).is_ok());
        let refused = attach(json!({ "name": "mine", "version": 2 })).unwrap_err();
        assert!(
            refused.code == "invalid_params" && refused.message.ends_with("this hub has 1"),
            "{refused:?}"
        );
    }
}
