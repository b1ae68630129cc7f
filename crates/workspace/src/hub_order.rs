//! What the hub orders.

use ringer_core::message::ShownKind;
use serde::Deserialize;

/// What the hub orders.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(crate) enum HubOrder {
    Ring { surface_id: String, lit: bool, unread: usize, kind: Option<ShownKind> },
    Badge { workspace_id: String, badge: usize },
    Flash { surface_id: String },
    Focus { surface_id: String },
    Toast { text: Option<String> },
    Indicator { key: String, text: String },
}
