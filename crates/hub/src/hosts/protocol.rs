//! The messages between the hub and attached hosts. The meaning of a host's request depends on its connection.

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_ipc::part::Unreachable;
use serde::{Deserialize, Serialize};

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
    Views(ViewsParams),
    /// The person saw a surface at this time, in milliseconds since 1970. The host does not know whether they still do.
    Glanced { surface_id: String, at_ms: i64 },
    /// The person typed in the host.
    Typed,
    /// A surface is unread without a notification: restored from an earlier session, or because something happened there.
    Unread { surface_id: String, is_restored: bool, report: Option<String> },
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

/// The version of the host protocol. New fields and orders do not change it: both sides ignore unknown ones.
pub(crate) const HOST_PROTOCOL: u32 = 1;

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
    /// True if `surface.views` would report that the person looks at this surface.
    #[serde(default = "yes")]
    pub(crate) reports_looks: bool,
}

/// A surface as the hub describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SurfaceInfo {
    pub(crate) surface: SurfaceId,
    pub(crate) workspace: WorkspaceId,
    /// The terminal device.
    pub(crate) tty: Option<String>,
    /// The name of its host.
    pub(crate) host: String,
    pub(crate) title: Option<String>,
    /// The location for people, such as `main:3`.
    pub(crate) place: Option<String>,
    /// The surface that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<SurfaceId>,
}

pub(crate) fn yes() -> bool {
    true
}

/// All surfaces of a host that the person looks at.
#[derive(Debug, Deserialize)]
pub(crate) struct ViewsParams {
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
    /// The journal can be written again: the host sends the reports that were refused as `busy`.
    Writable,
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
