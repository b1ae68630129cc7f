//! The messages between the hub and attached hosts. The meaning of a host's request depends on its connection.

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_ipc::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hosts::tmux::Unreachable;
use crate::socket::params::{one_or_several, read};

/// Identifies a connection to the socket. The server never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// A request of a host.
#[derive(Debug)]
pub(crate) enum HostRequest {
    /// Makes the connection a host.
    Attach { name: String, abilities: HostAbilities },
    /// Surfaces were opened or changed.
    Opened(Vec<SurfaceParams>),
    /// A surface was closed.
    Closed { surface_id: String },
    /// The surfaces that the person looks at.
    Looks(LooksParams),
    /// The person saw a surface at this time, in milliseconds since 1970. The host does not know whether they still do.
    Glanced { surface_id: String, at_ms: i64 },
    /// The person typed in the host.
    Typed,
    /// A surface is unread without a notification: restored from an earlier session, or because something happened there.
    Unread { surface_id: String, is_restored: bool },
    /// The answer to a focus order.
    Focused { surface_id: String, result: Result<(), Unreachable> },
}

/// The abilities of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAbilities {
    /// The host obeys focus orders.
    pub(crate) can_focus: bool,
    /// The host shows rings. If not, surfaces ring as they would without it.
    pub(crate) draws_rings: bool,
    /// The host itself is the terminal of its surfaces, so output to their devices comes back to it.
    pub(crate) emulates: bool,
}

pub(crate) type Reader = fn(Value) -> Result<HostRequest, ApiError>;

/// The methods of hosts.
const METHODS: &[(&str, Reader)] = &[
    (ATTACH, |params| {
        let HostName { name, version, can_focus, draws_rings, emulates } = read(params)?;
        if version != HOST_PROTOCOL {
            let why =
                format!("version {version} of the host protocol is unknown; this hub has {HOST_PROTOCOL}");
            return Err(ApiError::params(why));
        }
        Ok(HostRequest::Attach { name, abilities: HostAbilities { can_focus, draws_rings, emulates } })
    }),
    ("surface.opened", |params| one_or_several(params, "surfaces").map(HostRequest::Opened)),
    ("surface.changed", |params| one_or_several(params, "surfaces").map(HostRequest::Opened)),
    ("surface.closed", |params| {
        let SurfaceName { surface_id } = read(params)?;
        Ok(HostRequest::Closed { surface_id })
    }),
    ("surface.looks", |params| read(params).map(HostRequest::Looks)),
    ("surface.glanced", |params| {
        let SurfaceGlanced { surface_id, at_ms } = read(params)?;
        Ok(HostRequest::Glanced { surface_id, at_ms })
    }),
    ("surface.typed", |_| Ok(HostRequest::Typed)),
    ("surface.unread", |params| {
        let SurfaceUnread { surface_id, restored } = read(params)?;
        Ok(HostRequest::Unread { surface_id, is_restored: restored })
    }),
    ("surface.focused", |params| {
        let SurfaceFocused { surface_id, why, hint } = read(params)?;
        let result = why.map_or(Ok(()), |why| Err(Unreachable { hint, ..Unreachable::new(why) }));
        Ok(HostRequest::Focused { surface_id, result })
    }),
];

impl HostRequest {
    /// Returns the reader of a method, if hosts have such a method.
    pub(crate) fn reader(method: &str) -> Option<Reader> {
        METHODS.iter().find(|(name, _)| *name == method).map(|(_, reader)| *reader)
    }

    /// Returns the names of the methods of hosts.
    pub(crate) fn method_names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|(name, _)| *name)
    }
}

/// The version of the host protocol. New fields and orders do not change it: both sides ignore unknown ones.
pub(crate) const HOST_PROTOCOL: u32 = 1;

/// The method that makes a connection a host.
pub(crate) const ATTACH: &str = "host.attach";

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
}

#[derive(Debug, Deserialize)]
struct SurfaceFocused {
    surface_id: String,
    /// The reason why the host could not focus the surface. Missing on success.
    why: Option<String>,
    /// A command that helps the person.
    hint: Option<String>,
}

/// A surface of a host.
#[derive(Debug, Deserialize)]
pub(crate) struct SurfaceParams {
    pub(crate) surface_id: String,
    /// If missing, the surface belongs to the repository from which its messages come.
    #[serde(default)]
    pub(crate) workspace_id: Option<String>,
    #[serde(default)]
    pub(crate) tty: Option<String>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// The position in words.
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// The id of the surface around it. A terminal may also be given as `tty:DEVICE@START`.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// True if `surface.looks` would report that the person looks at this surface.
    #[serde(default = "yes")]
    pub(crate) reports_looks: bool,
}

fn yes() -> bool {
    true
}

fn first_version() -> u32 {
    1
}

/// All surfaces of a host that the person looks at.
#[derive(Debug, Deserialize)]
pub(crate) struct LooksParams {
    pub(crate) views: Vec<ViewParams>,
    /// True if the host reports every surface that is looked at.
    #[serde(default = "yes")]
    pub(crate) is_complete: bool,
    /// True if the person is present. A host that does not know leaves it out.
    #[serde(default)]
    pub(crate) present: Option<bool>,
    /// True if an action of the person caused the change.
    #[serde(default = "yes")]
    pub(crate) by_person: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ViewParams {
    pub(crate) client: String,
    pub(crate) surface_id: String,
}

/// An order to a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum HostOrder {
    /// Turns a surface's ring on or off, or changes its reason.
    Ring { surface_id: SurfaceId, lit: bool, unread: usize, kind: Option<ShownKind> },
    /// Changes a workspace's badge.
    Badge { workspace_id: WorkspaceId, badge: usize, text: String },
    /// Flashes a surface once.
    Flash { surface_id: SurfaceId },
    /// Brings a surface to the front. The host answers with `surface.focused`.
    Focus { surface_id: SurfaceId },
    /// Replaces the toast, or removes it.
    Toast { text: Option<String> },
    /// Changes an indicator. An empty text removes it.
    Indicator { key: String, text: String },
}

impl HostOrder {
    pub(crate) fn ring(surface: &SurfaceId, ring: Option<Ring>) -> Self {
        let Ring { unread, kind } = ring.unwrap_or_default();
        Self::Ring { surface_id: surface.clone(), lit: ring.is_some(), unread, kind }
    }

    pub(crate) fn badge(workspace: &WorkspaceId, badge: Badge) -> Self {
        Self::Badge { workspace_id: workspace.clone(), badge: badge.0, text: badge.to_string() }
    }

    pub(crate) fn toast(toast: Option<&Toast>) -> Self {
        Self::Toast { text: toast.map(Toast::text) }
    }
}

/// An order and its host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentOrder {
    pub(crate) host: ConnectionId,
    pub(crate) order: HostOrder,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_of_another_version_is_refused_and_told_which_there_is() {
        let attach = |params: Value| HostRequest::reader(ATTACH).unwrap()(params);
        assert!(attach(json!({ "name": "mine" })).is_ok());
        assert!(attach(json!({ "name": "mine", "version": 1, "of a later one": true })).is_ok());
        let refused = attach(json!({ "name": "mine", "version": 2 })).unwrap_err();
        assert!(
            refused.code == "invalid_params" && refused.message.ends_with("this hub has 1"),
            "{refused:?}"
        );
    }
}
