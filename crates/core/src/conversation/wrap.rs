//! Breaks text into lines of a given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most combining marks on one character. More are dropped: stacked marks could fill the screen above it.
const MAX_MARKS: usize = 8;
/// Replaces a tab. Real tab stops would depend on the column at which the frame begins.
const TAB: &str = "    ";
/// Replaces a character that is wider than the whole line.
const TOO_WIDE: &str = "?";

/// Breaks a text at its line breaks, between words where a line is too long, and inside a word that is too long for a whole
/// line. A wide character is never cut in half. No line is wider than `room`, which must be at least 1.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(&line.replace('\t', TAB), room)).collect()
}

fn wrap_line(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for cell in cells(text) {
        let cell = if cell.width() > room { TOO_WIDE } else { &cell };
        while line.width() + cell.width() > room {
            let broken_at_a_word = cell != " " && break_at_a_word(&mut line, &mut lines);
            if !broken_at_a_word {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        // Drop the space at which a line was broken.
        let swallowed = cell == " " && line.is_empty() && !lines.is_empty();
        if !swallowed {
            line.push_str(cell);
        }
    }
    lines.push(line);
    lines
}

/// Moves everything up to the last space of `line` to `lines`. Does not break at leading spaces, which are indentation. Returns
/// false if there is no other space.
fn break_at_a_word(line: &mut String, lines: &mut Vec<String>) -> bool {
    let words = line.trim_start_matches(' ');
    let indentation = line.len() - words.len();
    let Some(space) = words.rfind(' ') else { return false };
    let rest = line.split_off(indentation + space + 1);
    lines.push(std::mem::replace(line, rest).trim_end().to_owned());
    true
}

/// Truncates a text to `room` columns, with `mark` at the end if anything is missing.
pub(crate) fn shorten(text: &str, room: usize, mark: &str) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for cell in cells(text) {
        if short.width() + cell.width() + mark.width() > room {
            break;
        }
        short.push_str(&cell);
    }
    if short.width() + mark.width() <= room {
        short.push_str(mark);
    }
    short
}

/// Splits a text into characters, each with its combining marks and variation selectors.
fn cells(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || {
        let mut cell = String::from(rest.next()?);
        let mut marks = 0;
        while let Some(mark) = rest.next_if(|next| next.width() == Some(0)) {
            marks += 1;
            if marks <= MAX_MARKS {
                cell.push(mark);
            }
        }
        Some(cell)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, room: usize, expected: &[&str]) {
        assert_eq!(wrap(text, room), expected, "{text:?} in {room}");
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 6, &["one", "two", "three"]);
        check("one two", 20, &["one two"]);
        check("one\n\ntwo", 20, &["one", "", "two"]);
        check("", 5, &[""]);
    }

    #[test]
    fn a_word_longer_than_a_line_breaks_inside() {
        check("abcdefgh ij", 3, &["abc", "def", "gh", "ij"]);
        check("a bcdefgh", 4, &["a", "bcde", "fgh"]);
    }

    #[test]
    fn the_space_at_a_break_belongs_to_neither_line() {
        check("abcd efgh", 4, &["abcd", "efgh"]);
        check("abc   def", 4, &["abc", "def"]);
    }

    #[test]
    fn an_indentation_stays() {
        check("  fn x() {}", 20, &["  fn x() {}"]);
        check("\tx", 20, &["    x"]);
        check("  abcdef", 4, &["  ab", "cdef"]);
    }

    #[test]
    fn a_wide_character_is_never_cut_in_half() {
        check("日本語", 4, &["日本", "語"]);
        check("日本語", 5, &["日本", "語"]);
        check("a日本語", 2, &["a", "日", "本", "語"]);
        check("日a", 1, &["?", "a"]);
    }

    #[test]
    fn accents_stay_with_their_character() {
        check("e\u{301}e\u{301}", 1, &["e\u{301}", "e\u{301}"]);
        check("❤\u{fe0f}x", 2, &["❤\u{fe0f}", "x"]);
        assert_eq!(wrap(&format!("a{}", "\u{301}".repeat(5_000)), 9)[0].chars().count(), 1 + MAX_MARKS);
    }

    #[test]
    fn a_shortened_text_says_so() {
        let check =
            |text, room, expected| assert_eq!(shorten(text, room, "…"), expected, "{text:?} in {room}");
        check("notification", 12, "notification");
        check("notification", 6, "notif…");
        check("日本語", 4, "日…");
        check("abc", 1, "…");
        check("abc", 0, "");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_there_is_room(text in "[a-c 日本\u{301}\u{fe0f}❤👩🏽\t\n\u{627}\u{644}]{0,60}|\\PC{0,60}", room in 1usize..20) {
            for line in wrap(&text, room) {
                prop_assert!(line.width() <= room, "{line:?}");
            }
            prop_assert!(shorten(&text.replace(['\n', '\t'], " "), room, "…").width() <= room);
        }

        #[test]
        fn every_word_is_still_there(words in prop::collection::vec("[a-z日]{1,6}", 0..12), room in 2usize..20) {
            let text = words.join(" ");
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&wrap(&text, room).concat()), letters(&text));
        }
    }
}
