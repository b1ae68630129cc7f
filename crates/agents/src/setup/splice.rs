//! Local edits of a JSONC text.
//!
//! Three operations: append an item to an array or object, remove an item, replace a value. Removing an item takes out exactly
//! what its insertion added (comma, line end, indentation in the file's style); every other byte stays.

use std::ops::Range;

use super::jsonc::{Body, Node, Slot};

/// A value to write; members are written in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NewValue {
    Text(String),
    Number(u32),
    True,
    Array(Vec<NewValue>),
    Object(Vec<(&'static str, NewValue)>),
}

/// The style of a file: its line end and one step of its indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Formatting {
    newline: &'static str,
    step: String,
    /// The document is on one line, so new items go there too.
    one_line: bool,
}

impl Formatting {
    /// Detects the style of a text; two spaces and `\n` by default.
    pub(crate) fn of(text: &str, root: Option<&Node>) -> Self {
        let first = root.and_then(Node::body).and_then(|body| body.slots.first());
        let step = first.and_then(|slot| own_line_indent(text, slot.start)).filter(|step| !step.is_empty());
        let one_line = root.is_some_and(|root| first.is_some() && !text[root.span.clone()].contains('\n'));
        Self { newline: newline_of(text), step: step.unwrap_or("  ").to_owned(), one_line }
    }
}

/// The first line end of a text.
pub(crate) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Splits off the byte order mark.
pub(crate) fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// Appends a document to a text without a value.
pub(crate) fn document_after(text: &str, fresh: &NewValue, formatting: &Formatting) -> String {
    let gap = if text.is_empty() || text.ends_with(['\n', '\u{feff}']) { "" } else { newline_of(text) };
    let mut out = format!("{text}{gap}");
    write(&mut out, fresh, formatting, Some(""));
    out.push_str(formatting.newline);
    out
}

/// Appends an item to `container`; an object needs a key.
pub(crate) fn append(
    text: &str,
    container: &Node,
    formatting: &Formatting,
    key: Option<&str>,
    fresh: &NewValue,
) -> Option<String> {
    let body = container.body()?;
    let one_line =
        formatting.one_line || (!body.slots.is_empty() && !text[container.span.clone()].contains('\n'));
    let closing_indent = line_indent(text, container.span.start);
    let last_indent = body.slots.last().and_then(|slot| own_line_indent(text, slot.start));
    let indent = last_indent.map_or_else(|| format!("{closing_indent}{}", formatting.step), str::to_owned);

    let mut item = String::new();
    if !one_line {
        item.push_str(formatting.newline);
        item.push_str(&indent);
    } else if body.tail > container.span.start + 1 {
        item.push(' ');
    }
    if let Some(key) = key {
        item.push_str(&quoted(key));
        item.push_str(": ");
    }
    write(&mut item, fresh, formatting, (!one_line).then_some(indent.as_str()));

    let mut edits = Vec::new();
    match body.slots.last() {
        Some(Slot { comma: Some(_), .. }) => item.push(','),
        Some(slot) => edits.push((slot.value.span.end..slot.value.span.end, ",".to_owned())),
        None => {
            let closing = text.get(body.tail..container.span.end)?;
            if !one_line && !closing.contains('\n') {
                item.push_str(formatting.newline);
                item.push_str(closing_indent);
            }
        }
    }
    edits.push((body.tail..body.tail, item));
    Some(apply_edits(text, edits))
}

/// Removes an item, its comma, and the white space that its insertion added.
pub(crate) fn remove(text: &str, body: &Body, index: usize) -> Option<String> {
    let slot = body.slots.get(index)?;
    let end = slot.value.span.end;
    let mut edits = Vec::new();
    let mut rest = text.get(end..)?.to_owned();
    let comma = slot.comma.or_else(|| body.slots.get(index.checked_sub(1)?)?.comma);
    if let Some(comma) = comma {
        if comma >= end {
            rest.remove(comma - end);
        }
        edits.push((comma..comma + 1, String::new()));
    }

    let start = leading_space(text, slot.start);
    let line_ends_after = rest.trim_start_matches([' ', '\t']).starts_with(['\r', '\n']);
    if slot.after_line_comment && !line_ends_after {
        // Without this line end, the comment above would include what follows.
        edits.push((slot.start..end, String::new()));
    } else {
        edits.push((start..end, String::new()));
        if let (Some(comma), true) = (slot.comma, start == slot.start) {
            // Nothing preceded the item, so the blank after its comma belongs to it.
            let blanks = text[comma + 1..].len() - text[comma + 1..].trim_start_matches([' ', '\t']).len();
            edits.push((comma + 1..comma + 1 + blanks, String::new()));
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    Some(apply_edits(text, edits))
}

/// Replaces a value by a string.
pub(crate) fn replace_text(text: &str, node: &Node, new: &str) -> String {
    apply_edits(text, vec![(node.span.clone(), quoted(new))])
}

/// The start of the white space before `start`: at the last line end, or after the last other byte.
fn leading_space(text: &str, start: usize) -> usize {
    let solid = text[..start].trim_end_matches([' ', '\t', '\r', '\n']).len();
    match text[solid..start].rfind('\n') {
        Some(at) if text[solid..solid + at].ends_with('\r') => solid + at - 1,
        Some(at) => solid + at,
        None => solid,
    }
}

/// The indentation of an item, if it is the first thing on its line.
fn own_line_indent(text: &str, start: usize) -> Option<&str> {
    let line = text[..start].rfind('\n')? + 1;
    text.get(line..start).filter(|indent| indent.bytes().all(|byte| matches!(byte, b' ' | b'\t')))
}

/// The indentation of the line that contains `at`.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Replaces ranges of a text. The ranges are sorted and do not overlap.
fn apply_edits(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (range, new) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// A JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a value. `indent` is the indentation of its line, or `None` to stay on one line.
fn write(out: &mut String, fresh: &NewValue, formatting: &Formatting, indent: Option<&str>) {
    match fresh {
        NewValue::Text(text) => out.push_str(&quoted(text)),
        NewValue::Number(number) => out.push_str(&number.to_string()),
        NewValue::True => out.push_str("true"),
        NewValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
            write_body(out, ['[', ']'], &items, formatting, indent);
        }
        NewValue::Object(members) => {
            let items: Vec<_> = members.iter().map(|(key, value)| (Some(*key), value)).collect();
            write_body(out, ['{', '}'], &items, formatting, indent);
        }
    }
}

fn write_body(
    out: &mut String,
    [open, close]: [char; 2],
    items: &[(Option<&str>, &NewValue)],
    formatting: &Formatting,
    indent: Option<&str>,
) {
    out.push(open);
    let inner = indent.map(|indent| format!("{indent}{}", formatting.step));
    for (index, (key, value)) in items.iter().enumerate() {
        if let Some(inner) = &inner {
            out.push_str(if index == 0 { "" } else { "," });
            out.push_str(formatting.newline);
            out.push_str(inner);
        } else if index > 0 {
            out.push_str(", ");
        }
        if let Some(key) = key {
            out.push_str(&quoted(key));
            out.push_str(": ");
        }
        write(out, value, formatting, inner.as_deref());
    }
    if let (Some(indent), false) = (indent, items.is_empty()) {
        out.push_str(formatting.newline);
        out.push_str(indent);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::jsonc::parse;

    fn appended(text: &str) -> String {
        let root = parse(text).unwrap().root.unwrap();
        let formatting = Formatting::of(text, Some(&root));
        let key = root.object().map(|_| "new");
        append(text, &root, &formatting, key, &NewValue::Array(vec![NewValue::Number(1)])).unwrap()
    }

    fn without(text: &str, index: usize) -> String {
        let root = parse(text).unwrap().root.unwrap();
        let out = remove(text, root.body().unwrap(), index).unwrap();
        assert!(parse(&out).is_ok(), "{text:?} became {out:?}");
        out
    }

    #[test]
    fn a_new_item_follows_the_manner_of_the_file_and_leaves_no_trace() {
        for (text, expect) in [
            ("{\n}", "{\n  \"new\": [\n    1\n  ]\n}"),
            ("{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"new\": [\n\t\t1\n\t]\n}\n"),
            ("{\r\n \"a\": 1\r\n}", "{\r\n \"a\": 1,\r\n \"new\": [\r\n  1\r\n ]\r\n}"),
            ("{\"a\": 1}", "{\"a\": 1, \"new\": [1]}"),
            ("{ \"a\": 1, }", "{ \"a\": 1, \"new\": [1], }"),
            ("{\n  \"a\": 1 // x\n}", "{\n  \"a\": 1, // x\n  \"new\": [\n    1\n  ]\n}"),
            ("{\n  \"a\": 1, // x\n}", "{\n  \"a\": 1, // x\n  \"new\": [\n    1\n  ],\n}"),
            ("{ // nothing\n}", "{ // nothing\n  \"new\": [\n    1\n  ]\n}"),
            ("[1 /* x */]", "[1, /* x */ [1]]"),
        ] {
            let out = appended(text);
            assert_eq!(out, expect);
            let items = parse(&out).unwrap().root.unwrap().body().unwrap().slots.len();
            assert_eq!(without(&out, items - 1), text);
        }
        assert_eq!(appended("{}"), "{\n  \"new\": [\n    1\n  ]\n}");
    }

    #[test]
    fn an_item_goes_with_its_comma_only() {
        for (text, index, expect) in [
            ("[1, 2, 3]", 0, "[2, 3]"),
            ("[1, 2, 3]", 1, "[1, 3]"),
            ("[ 1, 2 ]", 0, "[ 2 ]"),
            ("[1]", 0, "[]"),
            ("[1,]", 0, "[]"),
            ("[\n  1, // mine\n  2\n]", 0, "[ // mine\n  2\n]"),
            ("[\n  // about 1\n  1,\n  2\n]", 0, "[\n  // about 1\n  2\n]"),
            ("[1, // x\n 2]", 1, "[1 // x\n ]"),
            ("[ // x\n 1, /* y */ 2]", 0, "[ // x\n  /* y */ 2]"),
            ("[1,\n\n  2\n]", 1, "[1\n\n]"),
        ] {
            assert_eq!(without(text, index), expect);
        }
    }
}
