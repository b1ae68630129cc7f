//! Characters that are not text (they move the cursor, change the reading direction, or are invisible), and escapes for them.
//!
//! The ranges come from Unicode 16: the general categories Cc, Cf, Zl, Zp and Co, the noncharacters, and the property
//! `Default_Ignorable_Code_Point`. They are listed here because the crate needs no other table of Unicode's categories.

use std::borrow::Cow;
use std::fmt::Write;

/// The zero-width joiner: it joins 👩 and 🚀 to 👩‍🚀. Everywhere else it is invisible.
pub(crate) const JOINER: char = '\u{200d}';

/// The zero-width non-joiner, which Persian writes inside words.
pub(crate) const NON_JOINER: char = '\u{200c}';

/// Returns true for a letter or sign of a script in which joiners change the shape of letters: Arabic, Syriac, N'Ko, Mandaic,
/// the scripts of India and Sri Lanka, Tibetan, Burmese, Khmer, Mongolian and Adlam.
pub(crate) fn joins_letters(character: char) -> bool {
    let is_of_script = matches!(
        character,
        '\u{600}'..='\u{8ff}'
            | '\u{900}'..='\u{dff}'
            | '\u{f00}'..='\u{109f}'
            | '\u{1780}'..='\u{18af}'
            | '\u{a840}'..='\u{a8ff}'
            | '\u{aa60}'..='\u{aa7f}'
            | '\u{fb50}'..='\u{fdcf}'
            | '\u{fdf0}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
            | '\u{11000}'..='\u{114ff}'
            | '\u{1e900}'..='\u{1e95f}'
    );
    is_of_script && !is_hidden(character)
}

/// Returns true for a character that no text sink passes on: a control, or an invisible character that changes what is drawn
/// or what a program reads. `\n` and `\t` are controls too; the caller handles those first, and [`JOINER`] inside emoji.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || is_line_separator(character)
        || (is_format(character) && !is_visible_format(character))
        || is_ignorable(character)
        || is_noncharacter(character)
        || is_distant_private(character)
}

/// Returns true for a character that JSON output escapes as `\uXXXX`: everything hidden, and characters that look different
/// from font to font. This set is wider because an escape loses nothing.
pub(crate) fn is_escaped_in_json(character: char) -> bool {
    is_hidden(character) || is_format(character) || matches!(character, '\u{e000}'..='\u{f8ff}')
}

/// U+2028 and U+2029. Many line readers, JavaScript and Python's `splitlines` among them, end a line there.
fn is_line_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// The category Cf: bidirectional controls, zero-width characters, tags, annotation marks.
fn is_format(character: char) -> bool {
    is_visible_format(character)
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0001}'
                | '\u{e0020}'..='\u{e007f}'
        )
}

/// The characters of Cf that are drawn: Arabic, Syriac and Kaithi number signs (`Prepended_Concatenation_Mark`).
fn is_visible_format(character: char) -> bool {
    matches!(
        character,
        '\u{600}'..='\u{605}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{110bd}'
            | '\u{110cd}'
    )
}

/// `Default_Ignorable_Code_Point` outside Cf: fillers and variation selectors. Texts have been smuggled in selectors; only the
/// two that ordinary emoji need (U+FE0E, U+FE0F) count as text.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_noncharacter(character: char) -> bool {
    matches!(character, '\u{fdd0}'..='\u{fdef}') || u32::from(character) & 0xfffe == 0xfffe
}

/// The private-use planes 15 and 16. kitty draws a part of an image, which another program may have sent, at U+10EEEE. The
/// private-use area of plane 0 holds the icons of prompts and status bars, which are text to people.
fn is_distant_private(character: char) -> bool {
    character >= '\u{f0000}'
}

/// Escapes every character in a JSON text that is not plain text: DEL, C1 controls, U+2028 and U+2029, bidirectional and
/// zero-width characters, private use and noncharacters. JSON writers escape only what the standard requires, U+0000 to
/// U+001F, and kitty 0.26 takes a raw U+009D for the start of a sequence that sets the clipboard.
///
/// It works on the finished text: outside a string, JSON has no character that would be escaped, and inside a string every
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
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// Escapes every character in a line that a terminal would not show as text, as `\u{202e}`: a person must see everything
/// before they allow it.
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

/// Below DEL, the JSON writer has already escaped what is necessary. Remaining controls may be the layout of the text.
fn is_escaped(character: char) -> bool {
    character >= '\u{7f}' && is_escaped_in_json(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The joiner and visible signs are the only format characters that may be in a line of text.
    #[test]
    fn text_stays_text() {
        for character in "plain é 日本 👩🚀❤\u{fe0f}\u{e0b0}\u{600}".chars() {
            assert!(!is_hidden(character), "{character:?}");
        }
        for character in
            ['\u{1b}', '\u{7f}', '\u{85}', '\u{9d}', '\u{202e}', '\u{fffe}', '\u{10eeee}', '\u{10ffff}']
        {
            assert!(is_hidden(character), "{character:?}");
        }
    }

    // The generator has its own table of Unicode's categories, so the tables above are checked against it.
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn whole_categories_are_known(text in r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]") {
            let character = text.chars().next().unwrap_or_default();
            prop_assert!(is_escaped_in_json(character) , "{character:?}");
            prop_assert!(is_hidden(character) || is_visible_format(character)
                || matches!(character, '\u{e000}'..='\u{f8ff}'), "{character:?}");
        }

        #[test]
        fn letters_and_symbols_are_text(text in r"[\p{L}\p{N}\p{P}\p{S}\p{Zs}--\p{Default_Ignorable_Code_Point}]") {
            prop_assert!(!text.chars().any(is_escaped_in_json), "{text:?}");
        }
    }

    #[test]
    fn only_hidden_characters_are_escaped() {
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
