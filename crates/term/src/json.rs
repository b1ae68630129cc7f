//! JSON that may be printed to a terminal.

use std::borrow::Cow;
use std::fmt::Write;

use crate::hidden::is_escaped_in_json;

/// The same JSON with every character escaped that is not plain text: DEL, C1 controls, U+2028 and U+2029,
/// bidirectional and zero-width characters, private use and noncharacters. JSON writers escape only what the standard
/// demands, U+0000 to U+001F, and kitty 0.26 takes a raw U+009D for the start of a sequence that sets the clipboard.
///
/// It works on the finished text: outside of a string, JSON has no character that would be escaped, and inside of one every
/// character may be. So a reader gets the same value.
///
/// ```
/// assert_eq!(ringer_term::escape_json("[\"a\u{9d}b\u{202e}\u{e0041}\"]"), r#"["a\u009db\u202e\udb40\udc41"]"#);
/// ```
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let Some(first) = json.find(is_escaped) else { return Cow::Borrowed(json) };
    let mut safe = String::with_capacity(json.len() + 64);
    safe.push_str(&json[..first]);
    for character in json[first..].chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // A String takes every write.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// A line of text with every character escaped that a terminal would not show as text, as `\\u{202e}`: what a person reads
/// before they allow it must be all that there is.
///
/// ```
/// assert_eq!(ringer_term::escape_hidden("rm a\u{202e}\u{1b}[2K é"), r"rm a\u{202e}\u{1b}[2K é");
/// ```
pub fn escape_hidden(line: &str) -> Cow<'_, str> {
    if !line.contains(is_escaped_in_json) {
        return Cow::Borrowed(line);
    }
    let escaped = line.chars().map(|character| {
        if is_escaped_in_json(character) {
            Cow::Owned(format!("\\u{{{:x}}}", u32::from(character)))
        } else {
            Cow::Owned(character.to_string())
        }
    });
    Cow::Owned(escaped.collect())
}

/// Below DEL a writer of JSON has escaped what needs it, and what is left there may be the layout of the text.
fn is_escaped(character: char) -> bool {
    character >= '\u{7f}' && is_escaped_in_json(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_is_not_text_is_escaped() {
        let check = |json, expected| assert_eq!(escape_json(json), expected);
        check("{\"a\": [1, \"é 日本 👩\"]}\n", "{\"a\": [1, \"é 日本 👩\"]}\n");
        check("\"\u{7f}\u{80}\u{9f}\"", r#""\u007f\u0080\u009f""#);
        check("\"\\u001b\\\\\u{85}\"", r#""\u001b\\\u0085""#);
        check("\"\u{2028}\u{2029}\u{feff}\"", r#""\u2028\u2029\ufeff""#);
        check("\"\u{10eeee}\"", r#""\udbfb\udeee""#);
        assert!(matches!(escape_json("{\"a\":\"é\"}"), Cow::Borrowed(_)), "nothing is copied for nothing");
    }

    proptest! {
        #[test]
        fn the_value_stays_and_nothing_hidden_does(
            text in r#"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{L}"\\👩]{0,40}"#,
            name in any::<String>(),
        ) {
            let value = serde_json::json!({ name: [text] });
            for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap_or_default()] {
                let safe = escape_json(&json);
                prop_assert!(!safe.chars().any(|c| is_escaped_in_json(c) && c != '\n'), "{safe:?}");
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).ok(), Some(value.clone()));
            }
        }
    }
}
