//! Spans of time in the file, as people write them: `500ms`, `90s`, `20m`, `2h`.

use std::time::Duration;

use ringer_core::time::span_text;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serializer;

/// The word for no span.
pub(crate) const OFF: &str = "off";

const PATTERN: &str = "[0-9]+(ms|s|m|h)";

/// Writes a span.
pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&span_text(*span))
}

/// Writes a span, or `off`.
#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
pub(crate) fn serialize_or_off<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => serialize(span, serializer),
        None => serializer.serialize_str(OFF),
    }
}

/// The schema of a span.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^{PATTERN}$") })
}

/// The schema of a span, or `off`.
pub(crate) fn schema_or_off(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": format!("^({OFF}|{PATTERN})$") })
}
