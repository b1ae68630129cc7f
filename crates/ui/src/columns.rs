//! Fits text into columns of a terminal.

use ringer_term::sanitise_line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the number of columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Pads a text with spaces at its end to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Pads a text with spaces at its front to `width` columns.
pub fn pad_front(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

/// Shortens a text to `width` columns by cutting its end.
///
/// ```
/// assert_eq!(ringer_ui::columns::cut_end("All tests pass", 10), "All tests…");
/// ```
pub fn cut_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        text.to_owned()
    } else {
        first(text, width.saturating_sub(1)).trim_end().to_owned() + ellipsis(width)
    }
}

/// Shortens a text to `width` columns by cutting its beginning.
pub fn cut_front(text: &str, width: usize) -> String {
    if text.width() <= width {
        text.to_owned()
    } else {
        format!("{}{}", ellipsis(width), last(text, width.saturating_sub(1)))
    }
}

/// Shortens a text to `width` columns by cutting its middle.
pub fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    format!("{}{}{}", first(text, room - room / 2), ellipsis(width), last(text, room / 2))
}

/// Wraps a text into lines of at most `width` columns. Breaks at word boundaries, and inside words that are longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_word_bounds() {
        let takes = word.width();
        if used > 0 && used + takes > width {
            // Spaces at a line break are dropped.
            if word.trim().is_empty() {
                used = width;
                continue;
            }
            lines.push(String::new());
            used = 0;
        }
        for grapheme in word.graphemes(true) {
            let takes = grapheme.width();
            if used > 0 && used + takes > width {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(grapheme);
            }
            used += takes;
        }
    }
    lines
}

/// Returns the columns for a text in a box, on a screen of this many columns.
pub(crate) fn text_room(columns: u16) -> usize {
    usize::from(columns).saturating_sub(6).min(110)
}

/// Wraps a text for a box, on a screen of this many columns.
pub(crate) fn text_lines(lines: &[String], columns: u16) -> Vec<String> {
    let room = text_room(columns);
    lines.iter().flat_map(|line| wrap(&sanitise_line(line), room)).collect()
}

fn ellipsis(width: usize) -> &'static str {
    if width > 0 { "…" } else { "" }
}

/// Returns the longest beginning that fits.
fn first(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += grapheme.width();
        used <= width
    };
    text.graphemes(true).take_while(fits).collect()
}

/// Returns the longest end that fits.
fn last(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += grapheme.width();
        used <= width
    };
    let mut graphemes: Vec<&str> = text.graphemes(true).rev().take_while(fits).collect();
    graphemes.reverse();
    graphemes.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("rm -rf build && make", 10), ["rm -rf ", "build && ", "make"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("abc  d", 4), ["abc", "d"], "two words stay two");
    }

    proptest! {
        #[test]
        fn truncated_text_fits(text in "\\PC{0,30}", columns in 0_usize..40) {
            for cut in [cut_end(&text, columns), cut_front(&text, columns), cut_middle(&text, columns)] {
                prop_assert!(cut.width() <= columns, "{cut:?}");
            }
        }

        #[test]
        fn wrapped_text_fits_and_loses_only_spaces(text in "[a-c 日本]{0,40}", columns in 2_usize..20) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| line.width() <= columns), "{lines:?}");
            let letters = |text: &str| text.chars().filter(|char| !char.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn wrapping_never_joins_words(text in "[a-c ]{0,40}", columns in 2_usize..20) {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assume!(words(&text).iter().all(|word| word.width() <= columns));
            let of_lines: Vec<String> = wrap(&text, columns).iter().flat_map(|line| words(line)).collect();
            prop_assert_eq!(of_lines, words(&text));
        }
    }
}
