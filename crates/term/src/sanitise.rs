//! Hostile text made safe to stand inside an escape sequence.
//!
//! Text is stored as it was sent; this is what the terminal, as a sink, does to it before it shows it.

use unicode_segmentation::UnicodeSegmentation;

/// The longest text put into a sequence, in characters. More would be cut by the notification daemon anyway.
pub const MAX_CHARS: usize = 1024;

/// One line of safe text: controls and invisible characters gone, line breaks and tabs turned into spaces, cut at
/// [`MAX_CHARS`] between graphemes.
///
/// ```
/// assert_eq!(ringer_term::sanitise_line("done\x1b]0;gotcha\x07\nnext"), "done]0;gotcha next");
/// ```
pub fn sanitise_line(text: &str) -> String {
    cut(&clean(text, ' '))
}

/// Safe text of several lines: as [`sanitise_line`], but `\n` stays. Only for payloads that are base64 encoded.
pub fn sanitise_block(text: &str) -> String {
    cut(&clean(text, '\n'))
}

fn clean(text: &str, line_break: char) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => kept.push(line_break),
            '\t' => kept.push(' '),
            JOINER => {
                let joins = kept.chars().next_back().is_some_and(ends_emoji)
                    && rest.peek().is_some_and(|next| is_pictograph(*next));
                if joins {
                    kept.push(character);
                }
            }
            _ if character.is_control() || is_invisible(character) => {}
            _ => kept.push(character),
        }
    }
    kept
}

/// Cuts between graphemes, so that neither a character nor a family of emoji is torn. A grapheme may be made
/// arbitrarily long by stacking accents; one that does not fit is left out whole.
fn cut(text: &str) -> String {
    if text.len() <= MAX_CHARS {
        return text.to_owned();
    }
    fitting(text, MAX_CHARS, |grapheme| grapheme.chars().count()).to_owned()
}

/// The beginning of a text that fits into so many bytes, likewise cut between graphemes.
pub(crate) fn cut_bytes(text: &str, most: usize) -> &str {
    if text.len() <= most { text } else { fitting(text, most, str::len) }
}

fn fitting(text: &str, room: usize, size: fn(&str) -> usize) -> &str {
    let mut used = 0;
    let end = text.grapheme_indices(true).find(|(_, grapheme)| {
        used += size(grapheme);
        used > room
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// The zero-width joiner: it makes 👩‍🚀 out of 👩 and 🚀, and hides things everywhere else.
const JOINER: char = '\u{200d}';

/// Characters that take no room but change what the eye sees or the machine reads: bidirectional controls,
/// zero-width characters, tags, annotation marks.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{061c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Whether an emoji sequence may go on after this character: a pictograph, its colour variant, or its skin tone.
fn ends_emoji(character: char) -> bool {
    is_pictograph(character) || character == '\u{fe0f}' || matches!(character, '\u{1f3fb}'..='\u{1f3ff}')
}

/// The blocks in which Unicode keeps what it calls extended pictographs.
fn is_pictograph(character: char) -> bool {
    matches!(
        character,
        '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2900}'..='\u{297f}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1f3fa}'
            | '\u{1f400}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_stripped_and_what_stays() {
        let check = |input, expected| assert_eq!(sanitise_line(input), expected, "{input:?}");
        check("plain text", "plain text");
        check("a\x1b[31mb\x07c\x7fd\u{9b}e", "a[31mbcde");
        check("one\ntwo\r\nthree\u{2028}four\tfive", "one two three four five");
        check("user\u{202e}txt.exe", "usertxt.exe");
        check("in\u{200b}visi\u{feff}ble\u{e0041}", "invisible");
        check("👩\u{200d}🚀 and a\u{200d}b", "👩\u{200d}🚀 and ab");
        check("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥");
        check("👩🏽\u{200d}🚀", "👩🏽\u{200d}🚀");
        check("日本語 é", "日本語 é");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(sanitise_block("one\r\ntwo\x1b\nthree"), "one\ntwo\nthree");
    }

    #[test]
    fn cut_between_graphemes() {
        let family = "👩\u{200d}👩\u{200d}👧";
        let text = format!("{}{family}", "x".repeat(MAX_CHARS - 2));
        assert_eq!(sanitise_line(&text), "x".repeat(MAX_CHARS - 2), "a family that does not fit is not torn");
        let zalgo = format!("a{}", "\u{301}".repeat(5_000));
        assert_eq!(sanitise_line(&zalgo), "", "one grapheme of any length cannot get past the limit");
    }

    fn is_harmless(text: &str) -> bool {
        !text.chars().any(|c| (c.is_control() && c != '\n') || (is_invisible(c) && c != JOINER))
    }

    proptest! {
        #[test]
        fn no_control_survives(text in any::<String>()) {
            let line = sanitise_line(&text);
            prop_assert!(is_harmless(&line) && !line.contains('\n'));
            prop_assert!(is_harmless(&sanitise_block(&text)));
            prop_assert!(line.chars().count() <= MAX_CHARS);
        }

        #[test]
        fn clean_text_is_left_alone(text in any::<String>()) {
            let once = sanitise_line(&text);
            prop_assert_eq!(sanitise_line(&once), once);
        }

        #[test]
        fn controls_and_joiners_in_any_order(text in "[\u{1b}\u{7}\u{9c}\u{9d}\u{200d}\u{fe0f}👩🚀a;0-9\n\u{202e}]{0,40}") {
            let once = sanitise_line(&text);
            prop_assert!(is_harmless(&once));
            prop_assert_eq!(sanitise_line(&once), once.clone());
        }
    }
}
