//! Times in the file: numbers of milliseconds.

use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serializer;

/// The longest time that can be set: a day.
pub(crate) const MAX_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;

/// Writes a time as a number of milliseconds.
pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(MAX_MILLISECONDS))
}

/// The schema of such a number.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_MILLISECONDS })
}
