//! Escapes text from a server that looks like a notification: only Ringer may write those.

use std::borrow::Cow;

use ringer_core::conversation::escape_tags;
use serde::de::IgnoredAny;

/// Escapes the elements that carry messages in the strings of a line. All other bytes stay unchanged. A line that is not JSON
/// is left alone, since no client reads it.
pub(crate) fn without_elements(line: &[u8]) -> Cow<'_, [u8]> {
    // Decode like clients that replace invalid UTF-8.
    let text = String::from_utf8_lossy(line);
    if !text.contains(['<', '\\', '\u{ff1c}', '\u{fe64}']) || !is_json(&text) {
        return Cow::Borrowed(line);
    }
    let (mut safe, mut kept) = (String::new(), 0);
    let mut at = 0;
    while let Some(begin) = text[at..].find('"').map(|quote| at + quote + 1) {
        let Some(end) = end_of_string(&text, begin) else { break };
        let plain = unquoted(&text[begin..end]);
        if let Cow::Owned(escaped) = escape_tags(&plain) {
            safe.push_str(&text[kept..begin]);
            // Serializing a string cannot fail.
            let quoted = serde_json::to_string(&escaped).unwrap_or_default();
            safe.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
            kept = end;
        }
        at = end + 1;
    }
    if kept == 0 {
        return Cow::Borrowed(line);
    }
    safe.push_str(&text[kept..]);
    Cow::Owned(safe.into_bytes())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text.trim_start_matches('\u{feff}')).is_ok()
}

/// Returns the offset of the closing quote of the string that begins at `begin`.
fn end_of_string(text: &str, begin: usize) -> Option<usize> {
    let mut is_escaped = false;
    let end = text[begin..].bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(begin + end)
}

/// Decodes the content of a JSON string. An unpaired surrogate, which JSON allows, becomes U+FFFD.
fn unquoted(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let (mut units, mut rest) = (Vec::with_capacity(raw.len()), raw.chars());
    while let Some(character) = rest.next() {
        let plain = if character == '\\' { rest.next().unwrap_or('\\') } else { character };
        match (character, plain) {
            ('\\', 'u') => {
                let digits: String = rest.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
            }
            ('\\', 'n') => units.push(u16::from(b'\n')),
            ('\\', 't') => units.push(u16::from(b'\t')),
            ('\\', 'r') => units.push(u16::from(b'\r')),
            ('\\', 'b') => units.push(8),
            ('\\', 'f') => units.push(12),
            (_, plain) => units.extend_from_slice(plain.encode_utf16(&mut [0; 2])),
        }
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn filtered(line: &str) -> String {
        String::from_utf8(without_elements(line.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn a_tag_in_any_string_is_escaped_and_the_rest_is_unchanged() {
        let check = |line: &str, expected: &str| assert_eq!(filtered(line), expected);
        check(
            r#"{"id" :1,"result":{"content":[{"type":"text","text":"a \u0041<notification source=\"user\">"}]},"z":0.10}"#,
            r#"{"id" :1,"result":{"content":[{"type":"text","text":"a A&lt;notification source=\"user\">"}]},"z":0.10}"#,
        );
        check(r#"{"text":"\u003cNotification>"}"#, r#"{"text":"&lt;Notification>"}"#);
        check(r#"{"text":"<\u200bnotification>"}"#, "{\"text\":\"&lt;\u{200b}notification>\"}");
        check(r#"{"text":"\ud800</notification>"}"#, "{\"text\":\"\u{fffd}&lt;/notification>\"}");
        check(r#"["<channel>",{"<notification>":1}]"#, r#"["&lt;channel>",{"&lt;notification>":1}]"#);
        check(r#"{"error":{"message":"</notification>"}}"#, r#"{"error":{"message":"&lt;/notification>"}}"#);
        for same in [
            r#"{"text":"a < b \u003c c, \"<b>\" \\"}"#,
            r#"{"text":"\ud800 <b>"}"#,
            "no JSON \"<notification>\"",
            "<notification>",
            "",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn a_byte_that_is_not_utf_8_hides_no_tag() {
        let line = b"{\"text\":\"\xff<notification>\"}";
        assert_eq!(&*without_elements(line), "{\"text\":\"\u{fffd}&lt;notification>\"}".as_bytes());
        let plain = b"{\"text\":\"\xff<b>\"}";
        assert_eq!(&*without_elements(plain), plain);
    }

    proptest! {
        #[test]
        fn every_string_is_escaped_and_the_rest_is_unchanged(texts in prop::collection::vec(
            "(<|/|notification|channel| |\u{200b}|\"|\\\\|n|.){0,12}", 0..4,
        )) {
            let escaped = texts.iter().map(|text| escape_tags(text)).collect::<Vec<_>>();
            let line = json!({ "id": 1, "result": texts }).to_string();
            let read: Value = serde_json::from_str(&filtered(&line)).unwrap();
            prop_assert_eq!(read, json!({ "id": 1, "result": escaped }));
        }

        #[test]
        fn no_server_output_panics(line in any::<Vec<u8>>()) {
            without_elements(&line);
        }
    }
}
