//! Finds the place in the answer to a tool call where text can be inserted. All other bytes stay unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::open_calls::{OpenCalls, messages};

/// The fields read from a server's answer.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    /// Set if this is a request of the server, which may use the same id.
    #[serde(borrow)]
    method: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
    /// If present, clients pass it to the model instead of the text.
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a RawValue,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// The offset in a line at which text can be inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertionPoint {
    /// At the end of the last text: before its closing quote.
    InText(usize),
    /// As a new text item: before the closing bracket of the list.
    InList { at: usize, is_first: bool },
}

impl InsertionPoint {
    /// Returns the line with the text inserted.
    pub(crate) fn insert(self, line: &str, text: &str) -> String {
        let (at, added) = match self {
            Self::InText(at) => (at, escaped(&format!("\n\n{text}"))),
            Self::InList { at, is_first } => {
                let comma = if is_first { "" } else { "," };
                (at, format!(r#"{comma}{{"type":"text","text":"{}"}}"#, escaped(text)))
            }
        };
        [&line[..at], &added, &line[at..]].concat()
    }
}

/// Reads a line of the server and closes the calls that it answers. Returns the insertion point in the first result of an open
/// call.
pub(crate) fn read_answer(line: &str, open: &mut OpenCalls) -> Option<InsertionPoint> {
    let mut point = None;
    for message in messages(line) {
        let Ok(answer) = serde_json::from_str::<Answer<'_>>(message) else { continue };
        if answer.method.is_none() && open.close(answer.id.get()) {
            point = point.or_else(|| insertion_point(line, answer.result?));
        }
    }
    point
}

fn insertion_point(line: &str, result: &RawValue) -> Option<InsertionPoint> {
    let ToolResult { content, structured } = serde_json::from_str(result.get()).ok()?;
    if structured.is_some() {
        return None;
    }
    let items: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    Some(match items.iter().rev().find_map(|item| text_of(item)) {
        Some(text) => InsertionPoint::InText(end_in(line, text.get()) - 1),
        None => InsertionPoint::InList { at: end_in(line, content.get()) - 1, is_first: items.is_empty() },
    })
}

/// Returns the text of an item, including its quotes.
fn text_of(item: &RawValue) -> Option<&RawValue> {
    let item: ContentItem<'_> = serde_json::from_str(item.get()).ok()?;
    item.text.filter(|text| item.kind.get() == "\"text\"" && text.get().starts_with('"'))
}

/// Returns the offset at which a part of a line ends. `part` must be a slice of `line`.
fn end_in(line: &str, part: &str) -> usize {
    part.as_ptr().addr() - line.as_ptr().addr() + part.len()
}

/// Escapes a text for use inside a JSON string.
fn escaped(text: &str) -> String {
    // Serializing a string cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn with_text(line: &str, text: &str) -> Option<String> {
        let mut open = OpenCalls::default();
        open.read_request(br#"{"id":1,"method":"tools/call"}"#);
        read_answer(line, &mut open).map(|point| point.insert(line, text))
    }

    #[test]
    fn a_notification_is_appended_to_the_last_text_and_the_rest_is_unchanged() {
        let line = "{\"jsonrpc\" : \"2.0\",\"result\":{ \"isError\":false, \"content\":[{\"text\":\"one\",\"type\":\"text\"},\
                    {\"type\":\"text\",\"text\":\"t\\u0077o\"} , {\"type\":\"image\",\"data\":\"\"}]},\"id\":1, \"z\":0.10}\r\n";
        let expected = line.replace(r"t\u0077o", r#"t\u0077o\n\n<a b=\"c\">"#);
        assert_eq!(with_text(line, "<a b=\"c\">").unwrap(), expected);
    }

    #[test]
    fn a_result_without_text_gets_a_text_item() {
        let check = |content: &str, expected: &str| {
            let line = |content: &str| format!(r#"{{"id":1,"result":{{"content":{content}}}}}"#);
            assert_eq!(with_text(&line(content), "\"x").unwrap(), line(expected));
        };
        check("[]", r#"[{"type":"text","text":"\"x"}]"#);
        check(r#"[{"type":"image"} ]"#, r#"[{"type":"image"} ,{"type":"text","text":"\"x"}]"#);
        check(
            r#"[{"type":"text","text":null}]"#,
            r#"[{"type":"text","text":null},{"type":"text","text":"\"x"}]"#,
        );
    }

    #[test]
    fn only_answers_to_open_calls_are_changed() {
        for line in [
            r#"{"id":2,"result":{"content":[]}}"#,
            r#"{"id":"1","result":{"content":[]}}"#,
            r#"{"id":1,"method":"sampling/createMessage","result":{"content":[]}}"#,
            r#"{"id":1,"error":{"code":-32000,"message":"no"}}"#,
            r#"{"id":1,"result":{"structuredContent":{}}}"#,
            r#"{"id":1,"result":{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}}"#,
            r#"{"id":1,"result":{"content":"text"}}"#,
            r#"{"id":1,"result":{"content":[]},"result":{"content":[]}}"#,
            "not JSON",
            "",
        ] {
            assert_eq!(with_text(line, "x"), None, "{line}");
        }
    }

    #[test]
    fn the_first_result_of_a_batch_gets_the_text() {
        let line = r#"[{"id":9,"result":{"content":[]}},{"id":1,"result":{"content":[]}}]"#;
        let expected = r#"[{"id":9,"result":{"content":[]}},{"id":1,"result":{"content":[{"type":"text","text":"x"}]}}]"#;
        assert_eq!(with_text(line, "x").unwrap(), expected);
    }

    proptest! {
        #[test]
        fn only_the_text_of_a_result_changes(texts in prop::collection::vec(".*", 1..4), added in ".*", other in ".*") {
            let content: Vec<Value> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
            let mut answer = json!({ "id": 1, "result": { "content": content, "_meta": { "other": other } } });
            let changed = with_text(&answer.to_string(), &added).unwrap();
            let last = texts.len() - 1;
            answer["result"]["content"][last]["text"] = json!(format!("{}\n\n{added}", texts[last]));
            prop_assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), answer);
        }

        #[test]
        fn no_server_output_panics(line in "[\\[{]?.{0,100}") {
            with_text(&line, "x");
        }
    }
}
