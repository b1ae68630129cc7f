//! The forms of values in a settings file: words, time spans and milliseconds.
//!
//! Each module serializes one form and describes it in the JSON schema.

pub(crate) mod word {
    //! Settings with a fixed set of words as values.

    use ringer_core::message::ShownKind;
    use ringer_core::policy::{OnFailure, PopupMode};
    use ringer_term::{CHANNELS, Channel};
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::Serializer;

    use crate::settings::OnePane;

    /// A value that is written as one of a fixed set of words. One list serves the parser, the serializer and the schema.
    pub(crate) trait Word: Copy + PartialEq + 'static {
        /// All words with their values, in the order of the documentation.
        fn words() -> Vec<(&'static str, Self)>;

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

    pub(crate) fn names<T: Word>() -> Vec<&'static str> {
        T::words().into_iter().map(|(word, _)| word).collect()
    }

    pub(crate) fn serialize<T: Word, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.word())
    }

    pub(crate) fn schema<T: Word>(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": names::<T>() })
    }

    pub(crate) fn list_schema<T: Word>(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": schema::<T>(generator) })
    }
}

pub(crate) mod span {
    //! Time spans: `500ms`, `90s`, `20m`, `2h`.

    use std::time::Duration;

    use ringer_core::time::span_text;
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::Serializer;

    /// Stands for no span.
    pub(crate) const OFF: &str = "off";

    const PATTERN: &str = "[0-9]+(ms|s|m|h)";

    pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&span_text(*span))
    }

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

    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^{PATTERN}$") })
    }

    pub(crate) fn schema_or_off(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^({OFF}|{PATTERN})$") })
    }
}

pub(crate) mod milliseconds {
    //! Times as numbers of milliseconds.

    use std::time::Duration;

    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::Serializer;

    /// One day.
    pub(crate) const MAX_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(MAX_MILLISECONDS))
    }

    pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX_MILLISECONDS })
    }
}
