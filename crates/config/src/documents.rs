//! The documents that are generated from the settings: JSON schema, example file and reference page.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::rules::Rules;
use crate::settings::Config;
use crate::table::{FieldInfo, Shape, TableInfo};

/// Returns the JSON schema of the person's file, as in `docs/config.schema.json`. It is draft 7, which the TOML extensions of all
/// editors support.
pub fn schema_text(rules: &Rules) -> String {
    let mut definitions = Map::new();
    let mut schema = definition(&TableInfo::of::<Config>(rules), &mut definitions);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Ringer's config.toml");
    schema["definitions"] = definitions.into();
    format!("{schema:#}\n")
}

fn definition(table: &TableInfo, definitions: &mut Map<String, Value>) -> Value {
    let properties = table.fields.iter().map(|field| (field.key.to_owned(), property(field, definitions)));
    let properties: Map<String, Value> = properties.collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    let required: Vec<&str> =
        table.fields.iter().filter(|field| field.is_required).map(|field| field.key).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(field: &FieldInfo, definitions: &mut Map<String, Value>) -> Value {
    let mut reference = |table: &TableInfo, least_fields: usize| {
        let mut own = definition(table, definitions);
        if least_fields > 0 {
            own["minProperties"] = json!(least_fields);
        }
        definitions.insert(table.name.to_owned(), own);
        json!({ "$ref": format!("#/definitions/{}", table.name) })
    };
    let mut schema = match &field.shape {
        Shape::Value(schema) | Shape::Map(schema) => schema.clone(),
        // Beside `$ref`, draft 7 ignores all other keys.
        Shape::Table(table) => json!({ "allOf": [reference(table, 0)] }),
        Shape::Tables(table) => json!({ "type": "array", "items": reference(table, 0) }),
        Shape::InlineTables(table) => json!({ "type": "array", "items": reference(table, 1) }),
    };
    schema["description"] = json!(field.doc);
    if let Some(default) = &field.default {
        schema["default"] = json!(default);
    }
    schema
}

/// The longest line of a comment in the example file.
const LINE: usize = 120;

const EXAMPLE_HEADER: &str = "\
# Ringer's settings: $XDG_CONFIG_HOME/ringer/config.toml (~/.config/ringer/config.toml), or the file RINGER_CONFIG names.
# Every key is at its default here. Lines that begin with # and no space are examples to uncomment.
";

/// Returns a documented file with every key at its default, and with commented-out examples.
pub fn example(rules: &Rules) -> String {
    let mut text = EXAMPLE_HEADER.to_owned();
    add_fields(&mut text, "", &TableInfo::of::<Config>(rules).fields);
    text
}

/// Adds the fields of a table. Those that are values come first: in TOML, what follows a header belongs to it.
fn add_fields(text: &mut String, parent: &str, fields: &[FieldInfo]) {
    let path = |key: &str| if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") };
    let is_value = |field: &&FieldInfo| matches!(field.shape, Shape::Value(_) | Shape::InlineTables(_));
    if parent.is_empty() {
        text.push('\n');
    }
    for field in fields.iter().filter(is_value) {
        add_comment(text, &sentences(field));
        let default = field.default.as_ref().map(|default| json!(default).to_string());
        let _ = writeln!(text, "{} = {}", field.key, default.unwrap_or_default());
    }
    for field in fields.iter().filter(|field| !is_value(field)) {
        text.push('\n');
        add_comment(text, &sentences(field));
        match &field.shape {
            Shape::Value(_) | Shape::InlineTables(_) => {}
            Shape::Map(_) => {
                let _ = writeln!(text, "[{}]", path(field.key));
                field.examples.iter().for_each(|line| text.extend(["#", line, "\n"]));
            }
            Shape::Table(table) => {
                let _ = writeln!(text, "[{}]", path(field.key));
                add_fields(text, &path(field.key), &table.fields);
            }
            Shape::Tables(table) => add_examples(text, &path(field.key), &table.fields),
        }
    }
}

/// Adds commented-out tables, one for each example that the fields have.
fn add_examples(text: &mut String, path: &str, fields: &[FieldInfo]) {
    let examples = fields.iter().map(|field| field.examples.len()).max().unwrap_or_default();
    for index in 0..examples {
        let separator = if index == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{separator}#[[{path}]]");
        for field in fields {
            // A field without examples is in the first one, with its default.
            let default = field.default.as_ref().filter(|_| field.examples.is_empty() && index == 0);
            let default = default.map(|default| json!(default).to_string());
            let value = field.examples.get(index).cloned().or(default);
            let Some(value) = value.filter(|value| value != "_") else { continue };
            if field.examples.iter().take(index).all(|earlier| *earlier == "_") {
                add_comment(text, &sentences(field));
            }
            let _ = writeln!(text, "#{} = {value}", field.key);
        }
    }
}

fn add_comment(text: &mut String, comment: &str) {
    let mut width = 0;
    for word in comment.split(' ') {
        let length = word.chars().count() + 1;
        if width == 0 || width + length > LINE {
            let newline = if width == 0 { "" } else { "\n" };
            text.extend([newline, "#"]);
            width = 1;
        }
        text.extend([" ", word]);
        width += length;
    }
    text.push('\n');
}

/// Returns the sentences about a field, with its words if they do not name all of them.
fn sentences(field: &FieldInfo) -> String {
    let Shape::Value(schema) = &field.shape else { return field.doc.clone() };
    let words = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    let words = words.into_iter().flatten().filter_map(Value::as_str).map(|word| format!("`{word}`"));
    let words: Vec<String> = words.collect();
    if words.iter().all(|word| field.doc.contains(word)) {
        return field.doc.clone();
    }
    format!("{} Values: {}.", field.doc, words.join(", "))
}

const REFERENCE_HEADER: &str = "\
# Settings: reference

Every key of `config.toml`, with its default. [config.md](../config.md) explains them, with examples.

This page is generated from the code. `UPDATE_DOCS=1 cargo test -p ringer --bin ringer generated_documents` writes it again.
";

/// Returns the page `docs/reference/settings.md`.
pub fn reference_text(rules: &Rules) -> String {
    let mut text = REFERENCE_HEADER.to_owned();
    add_reference(&mut text, "Top level", "", &TableInfo::of::<Config>(rules).fields);
    text
}

fn add_reference(text: &mut String, title: &str, doc: &str, fields: &[FieldInfo]) {
    let _ = write!(text, "\n## {title}\n\n");
    if !doc.is_empty() {
        let _ = write!(text, "{doc}\n\n");
    }
    text.push_str("| key | default | meaning |\n|---|---|---|\n");
    for field in fields.iter().filter(|field| !matches!(field.shape, Shape::Table(_) | Shape::Tables(_))) {
        let default = match &field.default {
            Some(default) => format!("`{}`", json!(default)),
            None if field.is_required => "required".to_owned(),
            None => "none".to_owned(),
        };
        let _ = writeln!(text, "| `{}` | {default} | {}{} |", field.key, sentences(field), shared(field));
    }
    for field in fields {
        let (title, table) = match &field.shape {
            Shape::Value(_) | Shape::Map(_) => continue,
            Shape::Table(table) => (format!("`[{}]`", field.key), table),
            Shape::Tables(table) => (format!("`[[{}]]`", field.key), table),
            Shape::InlineTables(table) => (format!("Tables in `{}`", field.key), table),
        };
        add_reference(text, &title, &format!("{}{}", field.doc, shared(field)), &table.fields);
    }
}

/// Returns a sentence about a field that a repository's file may have. Of a `[table]`, its fields say so.
fn shared(field: &FieldInfo) -> &'static str {
    let is_shared = field.is_shared && !matches!(field.shape, Shape::Table(_));
    if is_shared { " A repository's `.ringer.toml` may have it." } else { "" }
}
