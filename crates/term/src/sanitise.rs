//! Makes hostile text safe for use inside an escape sequence.
//!
//! Text is stored as it was sent and sanitised before a terminal shows it. A program in a pane writes whole texts, in every
//! script, so fewer characters are removed from a cell than from a notification ([`is_shown_in_cell`]).

use unicode_segmentation::UnicodeSegmentation;

use crate::hidden::{JOINER, NON_JOINER, is_hidden, joins_letters};

/// The longest text in a sequence, in characters. The notification daemon would cut a longer one anyway.
pub const MAX_CHARS: usize = 1024;

/// Returns one line of safe text: controls and invisible characters are removed, line breaks and tabs become spaces, and it is
/// cut at [`MAX_CHARS`] between graphemes.
///
/// ```
/// assert_eq!(ringer_term::sanitise_line("done\x1b]0;gotcha\x07\nnext"), "done]0;gotcha next");
/// ```
pub fn sanitise_line(text: &str) -> String {
    cut(&clean(text, ' ', ' '))
}

/// Like [`sanitise_line`], with an end that is never cut off: if both do not fit, the text is cut and ends in `…`.
///
/// ```
/// assert_eq!(ringer_term::sanitise_line_before("done\n", "  [id]"), "done   [id]");
/// assert!(ringer_term::sanitise_line_before(&"x".repeat(5000), "  [id]").ends_with("x…  [id]"));
/// ```
pub fn sanitise_line_before(text: &str, end: &str) -> String {
    let (text, end) = (clean(text, ' ', ' '), sanitise_line(end));
    let room = MAX_CHARS.saturating_sub(end.chars().count());
    if text.chars().count() <= room {
        return text + &end;
    }
    format!("{}…{end}", fitting(&text, room.saturating_sub(1), |grapheme| grapheme.chars().count()))
}

/// Returns safe text of several lines: like [`sanitise_line`], but `\n` stays. Only for payloads that are base64 encoded.
pub fn sanitise_block(text: &str) -> String {
    cut(&clean(text, '\n', ' '))
}

/// Makes a whole text safe to print: like [`sanitise_block`], but tabs stay too, and nothing is cut off.
///
/// ```
/// assert_eq!(ringer_term::sanitise_text("yes\x1b]52;c;eA==\x07\n\tbut\u{9d}"), "yes]52;c;eA==\n\tbut");
/// ```
pub fn sanitise_text(text: &str) -> String {
    clean(text, '\n', '\t')
}

/// Returns one line of safe text for a place where tmux expands formats: titles, names, status lines, messages. tmux reads
/// `#[…]` as a style, `#{…}` as a variable and runs `#(…)` as a command, so every `#` is replaced with `＃` (U+FF03). Doubling
/// it is not enough: how often a text is expanded depends on the person's own formats.
///
/// ```
/// assert_eq!(ringer_term::tmux_text("#1: #(reboot)"), "＃1: ＃(reboot)");
/// ```
pub fn tmux_text(text: &str) -> String {
    sanitise_line(text).replace('#', "＃")
}

fn clean(text: &str, line_break: char, tab: char) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => kept.push(line_break),
            '\t' => kept.push(tab),
            JOINER => {
                let joins = kept.chars().next_back().is_some_and(ends_emoji)
                    && rest.peek().is_some_and(|next| is_pictograph(*next));
                if joins {
                    kept.push(character);
                }
            }
            _ if is_hidden(character) => {}
            _ => kept.push(character),
        }
    }
    kept
}

/// Cuts between graphemes, so that neither a character nor an emoji sequence is torn. Stacked accents can make a grapheme
/// arbitrarily long; one that does not fit is left out entirely.
fn cut(text: &str) -> String {
    if text.len() <= MAX_CHARS {
        return text.to_owned();
    }
    fitting(text, MAX_CHARS, |grapheme| grapheme.chars().count()).to_owned()
}

/// Returns the beginning of a text that fits into a number of bytes, also cut between graphemes.
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

/// Returns true if an emoji sequence may continue after this character: a pictograph, its colour variant, or its skin tone.
pub(crate) fn ends_emoji(character: char) -> bool {
    is_pictograph(character) || character == '\u{fe0f}' || matches!(character, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Returns true if a variation selector for emoji or text may follow this character: a pictograph, a sign like ©, or one of
/// the keys of a telephone.
pub(crate) fn takes_presentation(character: char) -> bool {
    let is_sign = matches!(
        character,
        '#' | '*' | '0'..='9' | '©' | '®' | '\u{2010}'..='\u{218f}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
    );
    is_sign
        || is_pictograph(character)
        || matches!(character, '\u{2460}'..='\u{24ff}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// The blocks of Unicode's extended pictographs.
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

/// Returns true if a cell of a terminal inside another one may show a character. `before` is the previous character in the
/// same cell; for the first character it may be anything.
///
/// Not shown are controls, bidirectional controls, zero-width spaces and fillers, tags, variation selectors other than those
/// for emoji, noncharacters, and plane 16, where kitty has its placeholders for images. The joiner U+200D may follow an emoji,
/// and both joiners may follow a letter of a script that joins its letters, such as Arabic and the scripts of India. Icons in
/// the private-use plane 15 are text to people.
///
/// ```
/// use ringer_term::is_shown_in_cell;
///
/// assert!(is_shown_in_cell('\u{200c}', Some('ی')) && !is_shown_in_cell('\u{200c}', Some('a')));
/// assert!(is_shown_in_cell('\u{fe0f}', Some('❤')) && !is_shown_in_cell('\u{202e}', Some('a')));
/// ```
pub fn is_shown_in_cell(character: char, before: Option<char>) -> bool {
    match character {
        JOINER => before.is_some_and(|before| ends_emoji(before) || joins_letters(before)),
        NON_JOINER => before.is_some_and(joins_letters),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(takes_presentation),
        '\u{f0000}'..='\u{ffffd}' => true,
        _ => !is_hidden(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_stripped_and_text_stays() {
        let check = |input, expected| assert_eq!(sanitise_line(input), expected, "{input:?}");
        check("plain text", "plain text");
        check("a\x1b[31mb\x07c\x7fd\u{9b}e", "a[31mbcde");
        check("one\ntwo\r\nthree\u{2028}four\tfive\u{85}six", "one two three four five six");
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
    fn a_text_keeps_lines_tabs_and_length() {
        assert_eq!(sanitise_text("a\tb\r\nc\u{2028}d\u{9b}31m\u{202e}e"), "a\tb\nc\nd31me");
        let long = "é".repeat(3 * MAX_CHARS);
        assert_eq!(sanitise_text(&long), long);
    }

    #[test]
    fn the_end_of_a_line_is_kept_whole() {
        let check = |text: &str, expected: &str| assert_eq!(sanitise_line_before(text, " [7]"), expected);
        check("short", "short [7]");
        check(&"x".repeat(MAX_CHARS - 4), &format!("{} [7]", "x".repeat(MAX_CHARS - 4)));
        check(&"x".repeat(MAX_CHARS - 3), &format!("{}… [7]", "x".repeat(MAX_CHARS - 5)));
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
        !text.chars().any(|c| is_hidden(c) && c != '\n' && c != JOINER)
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
        fn whole_classes_are_taken_out(text in r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{L}👩🚀]{0,40}", end in "[ -~]{0,9}") {
            prop_assert!(is_harmless(&sanitise_line(&text)) && is_harmless(&sanitise_block(&text)));
            prop_assert!(is_harmless(&sanitise_text(&text).replace('\t', " ")));
            let line = sanitise_line_before(&text, &end);
            prop_assert!(is_harmless(&line) && !line.contains('\n') && line.ends_with(&end));
            prop_assert!(line.chars().count() <= MAX_CHARS);
        }

        #[test]
        fn nothing_is_left_for_tmux_to_expand(text in r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}#{}()\[\]a-zA-Z,:?]{0,40}") {
            let safe = tmux_text(&text);
            prop_assert!(!safe.contains('#') && is_harmless(&safe));
            prop_assert_eq!(safe.replace('＃', "#"), sanitise_line(&text));
        }

        #[test]
        fn clean_text_is_unchanged(text in any::<String>()) {
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

    /// The remaining text if each character is checked.
    fn shown(text: &str) -> String {
        let mut before = None;
        let keep = |character: &char| {
            let is_shown = is_shown_in_cell(*character, before);
            before = if is_shown { Some(*character) } else { before };
            is_shown
        };
        text.chars().filter(keep).collect()
    }

    #[test]
    fn visible_text_stays_and_deceptive_characters_are_removed() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text:?}");
        for text in [
            "plain é 漢字 ●",
            "👩\u{200d}🚀 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 👩🏽\u{200d}🚀 1\u{fe0f}\u{20e3} ©\u{fe0f}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष क\u{94d}\u{200c}ष",
            "ශ\u{dca}\u{200d}රී",
            "\u{e0b0} \u{f0001}",
        ] {
            check(text, text);
        }
        check("user\u{202e}txt.exe\u{2066}x\u{2069}\u{200f}", "usertxt.exex");
        check("in\u{200b}vi\u{2060}si\u{feff}b\u{ad}le\u{e0041}\u{fe01}\u{e0101}", "invisible");
        check("a\u{200d}b\u{200c}c\u{fe0f}d", "abcd");
        check("👩\u{200d}\u{200d}\u{200d}🚀❤\u{fe0f}\u{fe0f}", "👩\u{200d}🚀❤\u{fe0f}");
        check("ی\u{200c}\u{200c}\u{200d}ی", "ی\u{200c}ی");
        check("\u{10eeee}\u{3164}\u{115f}x", "x");
    }

    proptest! {
        #[test]
        fn bidirectional_controls_are_not_shown(text in ".{0,40}", before in any::<char>()) {
            for character in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{200e}', '\u{200b}', '\u{61c}'] {
                prop_assert!(!is_shown_in_cell(character, Some(before)));
            }
            let once = shown(&text);
            prop_assert_eq!(shown(&once), once.clone());
        }

        #[test]
        fn letters_and_symbols_are_shown(
            text in r"[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}--\p{Default_Ignorable_Code_Point}]{1,20}",
        ) {
            prop_assert_eq!(shown(&text), text);
        }
    }
}
