//! What hosts on the socket send: what it means depends on the connection.

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_ipc::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hosts::tmux::Unreachable;
use crate::socket::params::{one_or_several, read};

/// Identifies a connection to the socket. The server gives the numbers, and none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What a host sends on its connection.
#[derive(Debug)]
pub(crate) enum HostRequest {
    /// The connection is a host from now on.
    Attach { name: String, abilities: HostAbilities },
    /// It has surfaces, or some of its surfaces changed.
    Opened(Vec<SurfaceParams>),
    /// A surface was closed.
    Closed { surface_id: String },
    /// What the person looks at in it.
    Looks(LooksParams),
    /// The person saw a surface at this moment, in milliseconds since 1970. It does not know whether they still do.
    Glanced { surface_id: String, at_ms: i64 },
    /// The person typed in it.
    Typed,
    /// A surface is unread, for one of two reasons that are no notifications.
    Unread { surface_id: String, is_restored: bool },
    /// It went to a surface as it was asked to, or says why not.
    Focused { surface_id: String, result: Result<(), Unreachable> },
}

/// What a host can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAbilities {
    /// Whether it goes to a surface when it is asked to.
    pub(crate) can_focus: bool,
    /// Whether it shows rings. If not, a ring is what it would be without this host.
    pub(crate) draws_rings: bool,
    /// Whether it is the terminal of its surfaces itself. What is written to their devices comes back to it.
    pub(crate) emulates: bool,
}

pub(crate) type Reader = fn(Value) -> Result<HostRequest, ApiError>;

/// The methods of hosts: what they mean depends on the connection.
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
    /// What reads the requests of a method, if it is one of hosts.
    pub(crate) fn reader(method: &str) -> Option<Reader> {
        METHODS.iter().find(|(name, _)| *name == method).map(|(_, reader)| *reader)
    }

    /// The names of the methods of hosts.
    pub(crate) fn method_names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|(name, _)| *name)
    }
}

/// The version of what hosts and the hub send each other. New fields and orders need no other one: both ignore what they do not
/// know.
pub(crate) const HOST_PROTOCOL: u32 = 1;

/// The method that makes a connection a host.
pub(crate) const ATTACH: &str = "host.attach";

#[derive(Debug, Deserialize)]
struct HostName {
    name: String,
    #[serde(default = "first_version")]
    version: u32,
    /// Whether it goes to a surface when it is asked to.
    #[serde(default)]
    can_focus: bool,
    /// Whether it shows rings. For a terminal of a host that does not, the hub marks the title.
    #[serde(default = "yes")]
    draws_rings: bool,
    /// Whether it is the terminal of its surfaces. Notifications for them are written to the terminal around it.
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
    /// When, in milliseconds since 1970.
    at_ms: i64,
}

#[derive(Debug, Deserialize)]
struct SurfaceUnread {
    surface_id: String,
    /// Whether it was unread in the session before; else something happened there.
    #[serde(default)]
    restored: bool,
}

#[derive(Debug, Deserialize)]
struct SurfaceFocused {
    surface_id: String,
    /// Why the host could not go there.
    why: Option<String>,
    /// A command that helps.
    hint: Option<String>,
}

/// A surface of a host.
#[derive(Debug, Deserialize)]
pub(crate) struct SurfaceParams {
    pub(crate) surface_id: String,
    /// Without one it stands in the repository of what it sends.
    #[serde(default)]
    pub(crate) workspace_id: Option<String>,
    #[serde(default)]
    pub(crate) tty: Option<String>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// Where it is, in words.
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// The surface that it is inside of, by its id; a terminal also as `tty:DEVICE@START`.
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// Whether `surface.looks` would tell that this one is looked at.
    #[serde(default = "yes")]
    pub(crate) reports_looks: bool,
}

fn yes() -> bool {
    true
}

fn first_version() -> u32 {
    1
}

/// Everything that the person looks at in a host.
#[derive(Debug, Deserialize)]
pub(crate) struct LooksParams {
    pub(crate) views: Vec<ViewParams>,
    /// Whether the host would know of everything that is looked at.
    #[serde(default = "yes")]
    pub(crate) is_complete: bool,
    /// Whether the person is there. A host that does not know leaves it out.
    #[serde(default)]
    pub(crate) present: Option<bool>,
    /// Whether the person did something for it to change.
    #[serde(default = "yes")]
    pub(crate) by_person: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ViewParams {
    pub(crate) client: String,
    pub(crate) surface_id: String,
}

/// What a host is to show.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum HostOrder {
    /// A surface's ring goes on or off, or what it is lit for changes.
    Ring { surface_id: SurfaceId, lit: bool, unread: usize, kind: Option<ShownKind> },
    /// A workspace's number changes.
    Badge { workspace_id: WorkspaceId, badge: usize, text: String },
    /// A surface flashes once.
    Flash { surface_id: SurfaceId },
    /// The host goes to a surface, and answers with `surface.focused`.
    Focus { surface_id: SurfaceId },
    /// Another toast is shown, or none.
    Toast { text: Option<String> },
    /// An indicator says something else; nothing if the text is empty.
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

/// An order, and the host that it is for.
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
