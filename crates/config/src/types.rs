//! The forms of values in a settings file that several tables use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_core::policy::{OnFailure, PopupMode};
use ringer_core::time::{parse_span, span_text};
use ringer_term::{CHANNELS, Channel};
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::reader::{Field, Section, check_unique};
use crate::table::{FieldType, SettingValue, Settings, Shape, TableInfo};

/// `true` or `false`.
pub(crate) fn switch() -> FieldType<bool> {
    FieldType::new(
        |field| field.value().as_bool().or_else(|| field.expected("true or false")),
        |value| SettingValue::Boolean(*value),
        || json!({ "type": "boolean" }),
    )
}

/// A value that is written as one of a fixed set of words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// All words with their values, in the order of the documentation.
    fn words() -> Vec<(&'static str, Self)>;
}

impl Words for Channel {
    fn words() -> Vec<(&'static str, Self)> {
        CHANNELS.to_vec()
    }
}

impl Words for ShownKind {
    fn words() -> Vec<(&'static str, Self)> {
        Self::all().map(|kind| (kind.as_str(), kind)).collect()
    }
}

impl Words for PopupMode {
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

impl Words for OnFailure {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("keep", Self::Keep), ("suppress", Self::Suppress)]
    }
}

/// One of a fixed set of words.
pub(crate) fn word<T: Words>() -> FieldType<T> {
    let names = || T::words().into_iter().map(|(word, _)| word).collect::<Vec<_>>();
    FieldType::new(
        move |field| {
            let word = field.one_of(&names())?;
            T::words().into_iter().find(|(own, _)| *own == word).map(|(_, value)| value)
        },
        |value| {
            let word = T::words().into_iter().find(|(_, own)| own == value);
            SettingValue::text(word.map_or("", |(word, _)| word))
        },
        move || json!({ "type": "string", "enum": names() }),
    )
}

/// One day.
const MAX_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;

/// A time as a number of milliseconds, up to a day.
pub(crate) fn milliseconds() -> FieldType<Duration> {
    FieldType::new(
        |field| {
            let DeValue::Integer(number) = field.value() else {
                return field.expected("a number of milliseconds");
            };
            let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
            let expected = format!("is {number}; expected 1 to {MAX_MILLISECONDS} milliseconds");
            let read = read.filter(|number| (1..=MAX_MILLISECONDS).contains(number));
            read.map(Duration::from_millis).or_else(|| field.wrong(expected, None))
        },
        |value| SettingValue::Integer(u64::try_from(value.as_millis()).unwrap_or(MAX_MILLISECONDS)),
        || json!({ "type": "integer", "minimum": 1, "maximum": MAX_MILLISECONDS }),
    )
}

const SPANS: &str = "a span up to a day, like \"90s\", \"20m\" or \"2h\"";
const SPAN_PATTERN: &str = "[0-9]+(ms|s|m|h)";
const OFF: &str = "off";

/// A time span: `500ms`, `90s`, `20m`, `2h`.
pub(crate) fn span() -> FieldType<Duration> {
    FieldType::new(
        |field| {
            let text = field.text()?;
            parse_span(text).or_else(|| field.wrong(format!("is {text:?}; expected {SPANS}"), None))
        },
        |value| SettingValue::Text(span_text(*value)),
        || json!({ "type": "string", "pattern": format!("^{SPAN_PATTERN}$") }),
    )
}

/// A time span, or `off`, which is `None`.
pub(crate) fn span_or_off() -> FieldType<Option<Duration>> {
    FieldType::new(
        |field| match field.text()? {
            OFF => Some(None),
            text => parse_span(text)
                .map(Some)
                .or_else(|| field.wrong(format!("is {text:?}; expected {SPANS}, or \"{OFF}\""), None)),
        },
        |value| SettingValue::Text(value.map_or_else(|| OFF.to_owned(), span_text)),
        || json!({ "type": "string", "pattern": format!("^({OFF}|{SPAN_PATTERN})$") }),
    )
}

/// A time span longer than zero, or `off`, which is `None`.
pub(crate) fn positive_span_or_off() -> FieldType<Option<Duration>> {
    let of = span_or_off();
    FieldType {
        read: Box::new(move |field| match (of.read)(field)? {
            Some(Duration::ZERO) => {
                field.wrong(format!("is no time at all; expected {SPANS}, or \"{OFF}\""), None)
            }
            span => Some(span),
        }),
        ..of
    }
}

/// A text that `read` checks. `schema` is what the JSON schema says besides the type.
pub(crate) fn text(
    read: impl Fn(&Field<'_, '_>) -> Option<String> + 'static,
    schema: impl Fn() -> Value + 'static,
) -> FieldType<String> {
    FieldType::new(
        read,
        |value| SettingValue::text(value),
        move || {
            let mut schema = schema();
            schema["type"] = json!("string");
            schema
        },
    )
}

/// A name of this kind of thing, as error messages call it.
pub(crate) fn name(what: &'static str) -> FieldType<String> {
    text(move |field| field.name_text(what), || json!({ "minLength": 1 }))
}

/// Like [`name`]. The JSON schema knows how many bytes it may have.
pub(crate) fn name_up_to(most: usize, what: &'static str) -> FieldType<String> {
    text(move |field| field.name_text(what), move || json!({ "minLength": 1, "maxLength": most }))
}

/// A path. `~/` is the home directory, and relative paths start at the directory of the file.
pub(crate) fn path() -> FieldType<PathBuf> {
    FieldType::new(
        read_path,
        |value| SettingValue::text(&value.to_string_lossy()),
        || json!({ "type": "string", "minLength": 1 }),
    )
}

fn read_path(field: &Field<'_, '_>) -> Option<PathBuf> {
    let text = field.text()?;
    if text.is_empty() {
        return field.wrong("is empty; expected a path", None);
    }
    field.resolve(text).map_or_else(|why| field.wrong(format!("is {text:?}: {why}"), None), Some)
}

/// A program and its arguments, or an empty list. They run without a shell, so `~/` is expanded here.
pub(crate) fn command() -> FieldType<Vec<String>> {
    FieldType::new(
        |field| {
            let fields = field.list("a list of strings: the program and its arguments")?;
            fields.iter().enumerate().map(|(at, field)| read_argument(field, at == 0)).collect()
        },
        |value: &Vec<String>| SettingValue::List(value.iter().map(|word| SettingValue::text(word)).collect()),
        || json!({ "type": "array", "items": { "type": "string" } }),
    )
}

fn read_argument(field: &Field<'_, '_>, is_program: bool) -> Option<String> {
    let text = field.text()?;
    if is_program && text.is_empty() {
        return field.wrong("begins with an empty string; expected a program", None);
    }
    // A program with a slash is a path and relative to the file's directory; one without is looked up in PATH.
    let is_path = text == "~" || text.starts_with("~/") || (is_program && text.contains('/'));
    if !is_path {
        return Some(text.to_owned());
    }
    let path = read_path(field)?.into_os_string().into_string().ok();
    path.or_else(|| field.wrong("leads to a path that is not UTF-8", None))
}

/// A program and its arguments.
pub(crate) fn program() -> FieldType<Vec<String>> {
    not_empty(command(), "a program and its arguments")
}

/// A value that may be missing.
pub(crate) fn optional<T: 'static>(of: FieldType<T>) -> FieldType<Option<T>> {
    FieldType {
        read: Box::new(move |field| (of.read)(field).map(Some)),
        write: Box::new(move |value| value.as_ref().and_then(|value| (of.write)(value))),
        shape: of.shape,
    }
}

/// A list of values. `expected` is what error messages call it.
pub(crate) fn list<T: 'static>(of: FieldType<T>, expected: &'static str) -> FieldType<Vec<T>> {
    FieldType {
        read: Box::new(move |field| {
            // All are read before an invalid one returns, so that every problem is recorded.
            let values: Vec<Option<T>> = field.list(expected)?.iter().map(|field| (of.read)(field)).collect();
            values.into_iter().collect()
        }),
        write: Box::new(move |values| {
            Some(SettingValue::List(values.iter().filter_map(|value| (of.write)(value)).collect()))
        }),
        shape: Box::new(move |rules| match (of.shape)(rules) {
            Shape::Value(items) | Shape::Map(items) => {
                Shape::Value(json!({ "type": "array", "items": items }))
            }
            Shape::Table(table) | Shape::Tables(table) | Shape::InlineTables(table) => {
                Shape::InlineTables(table)
            }
        }),
    }
}

/// A list with at least one value. Without one, the key is left out.
pub(crate) fn not_empty<T: 'static>(of: FieldType<Vec<T>>, expected: &'static str) -> FieldType<Vec<T>> {
    FieldType {
        read: Box::new(move |field| {
            let wrong = || field.wrong(format!("is empty; expected {expected}"), None);
            let values = (of.read)(field)?;
            if values.is_empty() { wrong() } else { Some(values) }
        }),
        write: Box::new(move |values| (of.write)(values).filter(|_| !values.is_empty())),
        shape: Box::new(move |rules| match (of.shape)(rules) {
            Shape::Value(mut schema) => {
                schema["minItems"] = json!(1);
                Shape::Value(schema)
            }
            shape => shape,
        }),
    }
}

/// A table of strings, like `[keys]`. Its keys and values are checked by the [`TableRule`](crate::TableRule) of that name, if
/// there is one.
pub(crate) fn strings() -> FieldType<BTreeMap<String, String>> {
    FieldType {
        read: Box::new(read_strings),
        write: Box::new(|strings| {
            let fields = strings.iter().map(|(key, text)| (key.clone(), SettingValue::text(text)));
            Some(SettingValue::Table(fields.collect()))
        }),
        shape: Box::new(|_| {
            Shape::Map(json!({ "type": "object", "additionalProperties": { "type": "string" } }))
        }),
    }
}

fn read_strings(field: &Field<'_, '_>) -> Option<BTreeMap<String, String>> {
    let section = field.section("a table of strings")?;
    let read = |(key, field): (&str, Field<'_, '_>)| Some((key.to_owned(), field.text()?.to_owned()));
    let strings = section.fields().filter_map(read).collect();
    if let Some(rule) = field.rules().tables.iter().find(|rule| rule.table == field.name()) {
        for (key, field) in section.with_keys(&rule.keys, |_| None).fields() {
            if let DeValue::String(value) = field.value()
                && rule.keys.contains(&key)
                && let Err(what) = (rule.check)(key, value)
            {
                field.wrong::<()>(what, None);
            }
        }
    }
    Some(strings)
}

/// A table of settings: `[name]`.
pub(crate) fn table<T: Settings>() -> FieldType<T> {
    FieldType {
        read: Box::new(|field| T::read(&field.section("a table")?.with_keys(T::KEYS, |_| None).restricted())),
        write: Box::new(|table| Some(table.write())),
        shape: Box::new(|rules| Shape::Table(TableInfo::of::<T>(rules))),
    }
}

/// Any number of tables of settings: `[[name]]`. A repository's file may have all their fields.
pub(crate) fn tables<T: Settings>() -> FieldType<Vec<T>> {
    checked_tables(|_, _, _| true)
}

/// Like [`tables`]. `check` checks the fields of each table together, and with the tables before it: it records the problems,
/// and returns false if the table is not valid in itself.
pub(crate) fn checked_tables<T: Settings>(
    check: fn(&T, &Section<'_, '_>, &[T]) -> bool,
) -> FieldType<Vec<T>> {
    FieldType {
        read: Box::new(move |field| {
            let expected = format!("tables that begin with [[{}]]", field.name());
            let mut tables: Vec<T> = Vec::new();
            for section in field.list(&expected)?.iter().filter_map(|field| field.section(&expected)) {
                let section = section.with_keys(T::KEYS, |_| None);
                let table = T::read(&section).filter(|table| check(table, &section, &tables));
                tables.extend(table);
            }
            Some(tables)
        }),
        write: Box::new(|tables| Some(SettingValue::List(tables.iter().map(Settings::write).collect()))),
        shape: Box::new(|rules| Shape::Tables(TableInfo::of::<T>(rules))),
    }
}

/// Limits the number of tables.
pub(crate) fn at_most<T: 'static>(most: usize, of: FieldType<Vec<T>>) -> FieldType<Vec<T>> {
    let read = move |field: &Field<'_, '_>| {
        let read = (of.read)(field);
        let tables = field.value().as_array().map_or(0, |tables| tables.len());
        let wrong = || field.wrong(format!("has {tables} tables; {most} are possible"), None);
        if tables > most { wrong() } else { read }
    };
    FieldType { read: Box::new(read), ..of }
}

/// Requires that the texts of a key differ.
pub(crate) fn unique<T: 'static>(key: &'static str, of: FieldType<Vec<T>>) -> FieldType<Vec<T>> {
    let read = move |field: &Field<'_, '_>| {
        check_unique(field, key);
        (of.read)(field)
    };
    FieldType { read: Box::new(read), ..of }
}
