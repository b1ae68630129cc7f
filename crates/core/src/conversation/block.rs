//! The block that a transcript shows for a notification that entered a turn, with its lines wrapped to a given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::conversation::escape::{clean_attribute, clean_text};
use crate::conversation::injection::Injection;
use crate::conversation::source::InjectionSource;

/// The most lines of text in one block. If there are more, the last line says how many.
pub const MAX_LINES: usize = 200;
/// The smallest width with a frame. Below it only the text is drawn, since a frame would leave no room.
pub const MIN_FRAME: usize = 8;

/// The characters of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    /// Box-drawing characters.
    #[default]
    Unicode,
    /// `+`, `-` and `|`, and `?` for every other character that is not ASCII: for a locale without UTF-8.
    Ascii,
}

/// A notification as the transcript shows it.
///
/// It must not be saved: the saved conversation has the text in the tool result, and the model would read it twice if the
/// block were saved as well. So the type cannot be serialised:
///
/// ```compile_fail,E0277
/// fn saved<T: serde::Serialize>(_: &T) {}
/// fn cannot_be_saved(block: &ringer_core::conversation::NotificationBlock) {
///     saved(block);
/// }
/// ```
///
/// ```
/// use ringer_core::MessageId;
/// use ringer_core::message::Agent;
/// use ringer_core::conversation::{Charset, Injection, NotificationBlock, InjectionSource};
///
/// let id = MessageId::parse("m1")?;
/// let text = "actually wait, try a different approach";
/// let injection = Injection::new(id, Agent::new("a1")?, InjectionSource::User, text)?;
/// assert_eq!(
///     NotificationBlock::of(&injection).draw(41, Charset::Unicode).join("\n"),
///     "\
/// ┌─ notification (user) ──────────────────
/// │ actually wait, try a different approach
/// └────────────────────────────────────────"
/// );
/// # Ok::<(), ringer_core::conversation::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationBlock {
    /// The label with the source, then the notes.
    labels: Vec<String>,
    text: String,
}

struct Strokes {
    top: &'static str,
    side: &'static str,
    bottom: &'static str,
    line: &'static str,
    cut: &'static str,
    between: &'static str,
}

const UNICODE: Strokes =
    Strokes { top: "┌─ ", side: "│ ", bottom: "└─", line: "─", cut: "…", between: " · " };
const ASCII: Strokes = Strokes { top: "+- ", side: "| ", bottom: "+-", line: "-", cut: "~", between: ", " };

impl NotificationBlock {
    /// Creates the block of an injection, with only the visible characters of its text.
    pub fn of(injection: &Injection) -> Self {
        let times = if injection.times() > 1 {
            format!("\n(came {} times)", injection.times())
        } else {
            String::new()
        };
        Self::new(&injection.source, &format!("{}{times}", injection.text()), &[])
    }

    /// Creates a block from a source and a text, with notes beside the source, such as the time.
    ///
    /// ```
    /// use ringer_core::conversation::{Charset, InjectionSource, NotificationBlock};
    ///
    /// let block = NotificationBlock::new(&InjectionSource::User, "wait", &["14:03".to_owned()]);
    /// assert_eq!(block.draw(36, Charset::Unicode)[0], "┌─ notification (user) · 14:03 ─────");
    /// ```
    pub fn new(source: &InjectionSource, text: &str, notes: &[String]) -> Self {
        let label = format!("notification ({source})");
        let labels = std::iter::once(&label).chain(notes).map(|label| clean_attribute(label)).collect();
        Self { labels, text: clean_text(text) }
    }

    /// Returns the lines, none wider than `width` columns. Returns no lines if `width` is 0.
    pub fn draw(&self, width: usize, charset: Charset) -> Vec<String> {
        if width == 0 {
            return Vec::new();
        }
        let (strokes, text) = match charset {
            Charset::Unicode => (&UNICODE, self.text.clone()),
            Charset::Ascii => (&ASCII, ascii(&self.text)),
        };
        let label = self.labels.join(strokes.between);
        let label = if charset == Charset::Ascii { ascii(&label) } else { label };
        if width < MIN_FRAME {
            return limited(wrap(&text, width), width, strokes);
        }
        // The label has a space on either side, and at least one stroke after it.
        let label = shorten(&label, width - strokes.top.width() - 2, strokes.cut);
        let rest = width - strokes.top.width() - label.width() - 1;
        let room = width - strokes.side.width();
        let mut lines = vec![format!("{}{label} {}", strokes.top, strokes.line.repeat(rest))];
        lines.extend(
            limited(wrap(&text, room), room, strokes)
                .iter()
                .map(|line| format!("{}{line}", strokes.side).trim_end().to_owned()),
        );
        lines.push(format!("{}{}", strokes.bottom, strokes.line.repeat(width - strokes.bottom.width())));
        lines
    }
}

fn limited(mut lines: Vec<String>, room: usize, strokes: &Strokes) -> Vec<String> {
    if lines.len() > MAX_LINES {
        let more = lines.len() - (MAX_LINES - 1);
        lines.truncate(MAX_LINES - 1);
        lines.push(shorten(&format!("({more} more lines)"), room, strokes.cut));
    }
    lines
}

fn ascii(text: &str) -> String {
    let drawn = text.chars().filter(|character| character.width() != Some(0));
    drawn.map(|character| if character.is_ascii() { character } else { '?' }).collect()
}

/// The most combining marks on one character. More are dropped: stacked marks could fill the screen above it.
const MAX_MARKS: usize = 8;
/// Replaces a tab. Real tab stops would depend on the column at which the frame begins.
const TAB: &str = "    ";
/// Replaces a character that is wider than the whole line.
const TOO_WIDE: &str = "?";

/// Breaks a text at its line breaks, between words where a line is too long, and inside a word that is too long for a whole
/// line. A wide character is never cut in half. No line is wider than `room`, which must be at least 1.
fn wrap(text: &str, room: usize) -> Vec<String> {
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
fn shorten(text: &str, room: usize, mark: &str) -> String {
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
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::injection::injection;

    fn check(source: &str, text: &str, width: usize, charset: Charset, expected: &[&str]) {
        let drawn = NotificationBlock::of(&injection(1, source, text)).draw(width, charset);
        assert_eq!(drawn, expected, "{text:?} in {width}");
    }

    #[test]
    fn boxed_as_in_the_seed() {
        check(
            "user",
            "actually wait, try a different approach",
            42,
            Charset::Unicode,
            &[
                "┌─ notification (user) ───────────────────",
                "│ actually wait, try a different approach",
                "└─────────────────────────────────────────",
            ],
        );
    }

    #[test]
    fn long_text_wraps_inside_the_frame() {
        check(
            "agent:a2",
            "please rebase onto main\n\nthen tell me",
            28,
            Charset::Unicode,
            &[
                "┌─ notification (agent:a2) ─",
                "│ please rebase onto main",
                "│",
                "│ then tell me",
                "└───────────────────────────",
            ],
        );
        check(
            "user",
            "try a different approach",
            16,
            Charset::Unicode,
            &["┌─ notificati… ─", "│ try a", "│ different", "│ approach", "└───────────────"],
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check(
            "user",
            "日本語テスト",
            10,
            Charset::Unicode,
            &["┌─ noti… ─", "│ 日本語テ", "│ スト", "└─────────"],
        );
    }

    #[test]
    fn too_narrow_for_a_frame_is_text_alone() {
        check("user", "try it", 7, Charset::Unicode, &["try it"]);
        check("user", "try it", 3, Charset::Unicode, &["try", "it"]);
        check("user", "日a", 1, Charset::Unicode, &["?", "a"]);
        check("user", "try it", 0, Charset::Unicode, &[]);
    }

    #[test]
    fn ascii_where_the_locale_has_no_utf_8() {
        check(
            "user",
            "café 日本\nok",
            24,
            Charset::Ascii,
            &["+- notification (user) -", "| caf? ??", "| ok", "+-----------------------"],
        );
        check("user", "x", 12, Charset::Ascii, &["+- notifi~ -", "| x", "+-----------"]);
    }

    #[test]
    fn nothing_hidden_reaches_the_terminal() {
        check(
            "agent:a\u{202e}b",
            "a\x1b]0;title\x07b\u{202e}c\tx",
            30,
            Charset::Unicode,
            &["┌─ notification (agent:ab) ───", "│ a]0;titlebc    x", "└─────────────────────────────"],
        );
    }

    #[test]
    fn a_merged_one_says_how_many() {
        let drawn = NotificationBlock::of(&injection(1, "user", "x").repeated(3)).draw(24, Charset::Unicode);
        assert_eq!(drawn[1..3], ["│ x", "│ (came 3 times)"]);
    }

    #[test]
    fn a_long_text_does_not_fill_the_transcript() {
        let text = "line\n".repeat(1_000);
        let drawn = NotificationBlock::of(&injection(1, "user", text.trim_end())).draw(40, Charset::Unicode);
        assert_eq!(drawn.len(), MAX_LINES + 2);
        assert_eq!(drawn[MAX_LINES], "│ (801 more lines)");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_width(text in "x(\\PC|[日本\u{301}\u{1b}\t\n 👩🏽]){0,80}", width in 0usize..40) {
            for charset in [Charset::Unicode, Charset::Ascii] {
                let drawn = NotificationBlock::of(&injection(1, "ide_diagnostics", &text)).draw(width, charset);
                for line in &drawn {
                    prop_assert!(line.width() <= width, "{line:?} in {width}");
                    prop_assert!(!line.chars().any(char::is_control));
                    prop_assert!(charset == Charset::Unicode || line.is_ascii());
                }
                if width >= MIN_FRAME {
                    prop_assert_eq!(drawn[0].width(), width);
                    prop_assert_eq!(drawn.last().unwrap().width(), width);
                }
            }
        }
    }

    fn check_lines(text: &str, room: usize, expected: &[&str]) {
        assert_eq!(wrap(text, room), expected, "{text:?} in {room}");
    }

    #[test]
    fn lines_break_between_words() {
        check_lines("one two three", 7, &["one two", "three"]);
        check_lines("one two three", 6, &["one", "two", "three"]);
        check_lines("one two", 20, &["one two"]);
        check_lines("one\n\ntwo", 20, &["one", "", "two"]);
        check_lines("", 5, &[""]);
    }

    #[test]
    fn a_word_longer_than_a_line_breaks_inside() {
        check_lines("abcdefgh ij", 3, &["abc", "def", "gh", "ij"]);
        check_lines("a bcdefgh", 4, &["a", "bcde", "fgh"]);
    }

    #[test]
    fn the_space_at_a_break_belongs_to_neither_line() {
        check_lines("abcd efgh", 4, &["abcd", "efgh"]);
        check_lines("abc   def", 4, &["abc", "def"]);
    }

    #[test]
    fn an_indentation_stays() {
        check_lines("  fn x() {}", 20, &["  fn x() {}"]);
        check_lines("\tx", 20, &["    x"]);
        check_lines("  abcdef", 4, &["  ab", "cdef"]);
    }

    #[test]
    fn a_wide_character_is_never_cut_in_half() {
        check_lines("日本語", 4, &["日本", "語"]);
        check_lines("日本語", 5, &["日本", "語"]);
        check_lines("a日本語", 2, &["a", "日", "本", "語"]);
        check_lines("日a", 1, &["?", "a"]);
    }

    #[test]
    fn accents_stay_with_their_character() {
        check_lines("e\u{301}e\u{301}", 1, &["e\u{301}", "e\u{301}"]);
        check_lines("❤\u{fe0f}x", 2, &["❤\u{fe0f}", "x"]);
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
