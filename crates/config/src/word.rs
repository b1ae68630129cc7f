//! Settings that are one of a few words.

use ringer_core::attention::OnePane;
use ringer_core::message::ShownKind;
use ringer_core::policy::{OnFailure, PopupMode};
use ringer_term::{CHANNELS, Channel};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serializer;

/// A value that is written as one of a few words. The same list reads, writes and documents it.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// Every word with what it means, in the order of the documents.
    fn words() -> Vec<(&'static str, Self)>;

    /// The word for a value.
    fn word(self) -> &'static str {
        Self::words().into_iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

impl Word for Channel {
    fn words() -> Vec<(&'static str, Self)> {
        CHANNELS.to_vec()
    }
}

impl Word for ShownKind {
    fn words() -> Vec<(&'static str, Self)> {
        Self::all().map(|kind| (kind.as_str(), kind)).collect()
    }
}

impl Word for PopupMode {
    fn words() -> Vec<(&'static str, Self)> {
        vec![
            ("auto", Self::Auto),
            ("desktop", Self::Desktop),
            ("terminal", Self::Terminal),
            ("both", Self::Both),
            ("off", Self::Off),
        ]
    }
}

impl Word for OnePane {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("none", Self::None), ("tint", Self::Tint), ("border", Self::Border)]
    }
}

impl Word for OnFailure {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("keep", Self::Keep), ("suppress", Self::Suppress)]
    }
}

/// The words themselves.
pub(crate) fn names<T: Word>() -> Vec<&'static str> {
    T::words().into_iter().map(|(word, _)| word).collect()
}

/// Writes a value as its word.
pub(crate) fn serialize<T: Word, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.word())
}

/// The schema of one word.
pub(crate) fn schema<T: Word>(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": names::<T>() })
}

/// The schema of a list of words.
pub(crate) fn list_schema<T: Word>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": schema::<T>(generator) })
}
