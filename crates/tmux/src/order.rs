//! What the hub orders.

use ringer_core::message::{ShownKind, SurfaceId};
use serde::Deserialize;

/// What the hub orders, as far as tmux can do it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum Order {
    Ring {
        surface_id: SurfaceId,
        lit: bool,
        #[serde(default)]
        unread: usize,
        #[serde(default)]
        kind: Option<ShownKind>,
    },
}
