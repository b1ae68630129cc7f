//! The block that a transcript shows for a notification that entered a turn.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::conversation::escape::{clean_attribute, clean_text};
use crate::conversation::injection::Injection;
use crate::conversation::source::InjectionSource;
use crate::conversation::wrap::{shorten, wrap};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::injection::injection;
    use proptest::prelude::*;

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
}
