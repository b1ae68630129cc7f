//! `settings!` declares a table of settings: each field with its sentence, type, default and form in the file. Reading, writing,
//! the list of known keys and the generated documents follow from it.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::reader::{Field, Section};
use crate::rules::Rules;

type Read<T> = Box<dyn Fn(&Field<'_, '_>) -> Option<T>>;
type Write<T> = Box<dyn Fn(&T) -> Option<SettingValue>>;

/// A form of values of type `T` in a settings file.
pub(crate) struct FieldType<T> {
    /// Reads a value. Records a problem and returns `None` if it is invalid.
    pub(crate) read: Read<T>,
    /// Returns the value as the file has it. `None` leaves the key out.
    pub(crate) write: Write<T>,
    pub(crate) shape: Box<dyn Fn(&Rules) -> Shape>,
}

impl<T> FieldType<T> {
    /// A form of single values, with its JSON schema.
    pub(crate) fn new(
        read: impl Fn(&Field<'_, '_>) -> Option<T> + 'static,
        write: impl Fn(&T) -> SettingValue + 'static,
        schema: impl Fn() -> Value + 'static,
    ) -> Self {
        Self {
            read: Box::new(read),
            write: Box::new(move |value| Some(write(value))),
            shape: Box::new(move |_| Shape::Value(schema())),
        }
    }
}

/// A table that `settings!` declares.
pub(crate) trait Settings: Sized + 'static {
    /// The name of the definition in the JSON schema.
    const NAME: &'static str;
    const KEYS: &'static [&'static str];
    const DOC: &'static str;

    /// Reads every field, so that all problems are recorded. Returns `None` if a required one is missing or invalid.
    fn read(section: &Section<'_, '_>) -> Option<Self>;

    fn write(&self) -> SettingValue;

    fn fields(rules: &Rules) -> Vec<FieldInfo>;
}

/// A value as the file has it. Tables keep the order of their fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SettingValue {
    Boolean(bool),
    Integer(u64),
    Text(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl SettingValue {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for SettingValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Boolean(value) => value.serialize(serializer),
            Self::Integer(value) => value.serialize(serializer),
            Self::Text(value) => value.serialize(serializer),
            Self::List(values) => values.serialize(serializer),
            Self::Table(fields) => serializer.collect_map(fields.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// What the generated documents say of a field.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    pub(crate) key: &'static str,
    pub(crate) doc: String,
    /// Of a field in `[[table]]`: its value in each example of the table, or `_`. Of a map: its lines.
    pub(crate) examples: Vec<String>,
    /// A repository's file may have it.
    pub(crate) is_shared: bool,
    pub(crate) is_required: bool,
    pub(crate) default: Option<SettingValue>,
    pub(crate) shape: Shape,
}

impl FieldInfo {
    pub(crate) fn new<T>(
        (key, doc): (&'static str, &str),
        examples: &[&str],
        is_shared: bool,
        default: Option<T>,
        field_type: &FieldType<T>,
        rules: &Rules,
    ) -> Self {
        Self {
            key,
            doc: one_line(doc),
            // `stringify!` breaks long lists into lines.
            examples: examples.iter().map(|example| one_line(example)).collect(),
            is_shared,
            is_required: default.is_none(),
            default: default.and_then(|default| (field_type.write)(&default)),
            shape: (field_type.shape)(rules),
        }
    }
}

/// The structure of a field.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A single value, with its JSON schema.
    Value(Value),
    /// A table whose keys are no settings of their own, with its JSON schema.
    Map(Value),
    /// `[name]`
    Table(TableInfo),
    /// `[[name]]`
    Tables(TableInfo),
    /// A list of inline tables, like `[{ agent = "noisy" }]`. None of them is empty.
    InlineTables(TableInfo),
}

/// What the generated documents say of a table.
#[derive(Debug)]
pub(crate) struct TableInfo {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) fields: Vec<FieldInfo>,
}

impl TableInfo {
    pub(crate) fn of<T: Settings>(rules: &Rules) -> Self {
        Self { name: T::NAME, doc: one_line(T::DOC), fields: T::fields(rules) }
    }
}

/// Joins lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a field. One that is absent has its default; an invalid one too, but then the file is rejected anyway.
pub(crate) fn read_field<T>(
    section: &Section<'_, '_>,
    key: &str,
    is_shared: bool,
    default: Option<T>,
    field_type: &FieldType<T>,
) -> Option<T> {
    match section.get(key) {
        None if default.is_none() => section.wrong(format!("has no {key}"), None),
        None => {}
        Some(field) if section.is_restricted() && !is_shared => {
            field.wrong_key("cannot be set by a repository; it belongs in your own config.toml");
        }
        Some(field) => return (field_type.read)(&field).or(default),
    }
    default
}

/// Declares a struct whose fields are settings.
///
/// ```text
/// settings! {
///     /// A sentence about the table.
///     #[derive(Debug)]
///     pub struct HookEntry("Hook") {
///         /// A sentence about the field, for the schema, the example file and docs/reference/settings.md.
///         #[example("triage")]
///         pub id: String => name("id"),
///         /// A field with a default is optional.
///         #[key("timeout_ms")]
///         pub timeout: Duration = Duration::from_secs(20) => milliseconds(),
///     } from section {
///         /// A field that is no setting.
///         pub source: Source = section.source(),
///     }
/// }
/// ```
///
/// `#[key]` is the name in the file if it differs. `#[example]` has the value of a field in each example of its `[[table]]`, or
/// `_` where it is absent; `#[lines]` has the example lines of a map. `#[also_in(repository)]` allows the field in a repository's
/// file. With `: Default` after the name, the struct implements `Default`; then every field needs a default.
macro_rules! settings {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    (@is_shared) => { false };
    (@is_shared repository) => { true };
    (@impl_default [] $($rest:tt)*) => {};
    (@impl_default [Default] $Table:ident { $($field:ident = $default:expr,)* } { $($other:ident)* }) => {
        impl Default for $Table {
            fn default() -> Self {
                Self { $($field: $default,)* $($other: Default::default(),)* }
            }
        }
    };
    (
        $(#[doc = $table_doc:literal])*
        #[derive($($Derived:path),*)]
        pub struct $Table:ident($name:literal) $(: $Default:ident)? {
            $(
                $(#[doc = $doc:literal])*
                $(#[key($key:literal)])?
                $(#[example($($example:tt),*)])?
                $(#[lines($($line:literal),*)])?
                $(#[also_in($file:ident)])?
                pub $field:ident: $type:ty $(= $default:expr)? => $field_type:expr,
            )*
        }
        $(from $section:ident {
            $($(#[doc = $other_doc:literal])* pub $other:ident: $other_type:ty = $other_value:expr,)*
        })?
    ) => {
        $(#[doc = $table_doc])*
        #[derive($($Derived),*)]
        pub struct $Table {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($($(#[doc = $other_doc])* pub $other: $other_type,)*)?
        }

        impl $crate::table::Settings for $Table {
            const NAME: &'static str = $name;
            const KEYS: &'static [&'static str] = &[$(settings!(@key $field $($key)?)),*];
            const DOC: &'static str = concat!($($table_doc, "\n"),*);

            fn read(section: &$crate::reader::Section<'_, '_>) -> Option<Self> {
                // All are read before a missing one returns, so that every problem is recorded.
                let ($($field,)*) = ($($crate::table::read_field::<$type>(
                    section,
                    settings!(@key $field $($key)?),
                    settings!(@is_shared $($file)?),
                    settings!(@default $($default)?),
                    &$field_type,
                ),)*);
                $(let $section = section;)?
                Some(Self { $($field: $field?,)* $($($other: $other_value,)*)? })
            }

            fn write(&self) -> $crate::table::SettingValue {
                let fields = [$((
                    settings!(@key $field $($key)?).to_owned(),
                    ($field_type.write)(&self.$field),
                )),*];
                let set = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
                $crate::table::SettingValue::Table(set.collect())
            }

            fn fields(rules: &$crate::rules::Rules) -> Vec<$crate::table::FieldInfo> {
                vec![$($crate::table::FieldInfo::new::<$type>(
                    (settings!(@key $field $($key)?), concat!($($doc, "\n"),*)),
                    &[$($(stringify!($example)),*)? $($($line),*)?],
                    settings!(@is_shared $($file)?),
                    settings!(@default $($default)?),
                    &$field_type,
                    rules,
                )),*]
            }
        }

        impl serde::Serialize for $Table {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::table::Settings::write(self).serialize(serializer)
            }
        }

        settings! { @impl_default [$($Default)?] $Table { $($field $(= $default)?,)* } { $($($other)*)? } }
    };
}
pub(crate) use settings;
