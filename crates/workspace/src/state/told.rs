//! What the hub knows of the panes.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the hub was told last. A hub that has just been connected to was told nothing.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) surfaces: BTreeMap<String, Value>,
    pub(super) looks: Option<Value>,
}
