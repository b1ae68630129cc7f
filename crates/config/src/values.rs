//! How values of settings are written: as words, as spans of time, as milliseconds.
//!
//! Each module has what serde and schemars need for one form.

pub(crate) mod word {
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
}

pub(crate) mod span {
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
}

pub(crate) mod milliseconds {
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
}
