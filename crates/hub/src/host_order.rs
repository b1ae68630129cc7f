//! What the hub sends to hosts on the socket.

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use serde::Serialize;

use crate::request::ConnectionId;

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
