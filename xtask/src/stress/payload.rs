//! The messages. They are generated from the seed, so they can be regenerated for comparison and need not be kept.

use crate::random::Random;

/// The longest message in bytes: below the journal's limit of 64 KiB, and far above an atomic pipe write or a page.
const LONGEST: u64 = 60 * 1024;

/// Text that breaks careless formatting: line ends, quotes, escapes, control characters, direction marks, text that looks
/// like JSON, and characters of two, three and four bytes.
const PIECES: &[&str] = &[
    "a",
    "Z",
    "7",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\"",
    "\\",
    "\\n",
    "'",
    "`",
    "$(",
    "{\"id\":",
    "}",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{1b}[31m",
    "\u{1b}]0;",
    "\u{7f}",
    "\u{9b}",
    "é",
    "\u{202e}",
    "\u{2028}",
    "漢",
    "\u{feff}",
    "🔔",
    "👩\u{200d}💻",
];

/// Identifies a message by its writer and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Label {
    pub(super) writer: u32,
    pub(super) number: u32,
}

impl Label {
    /// Parses the label at the start of a message.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let writer = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        parts.next().map(|_| Self { writer, number })
    }

    /// Returns the name of the sending agent.
    pub(super) fn sender(self) -> String {
        format!("w{}", self.writer)
    }

    /// Returns the whole message.
    pub(super) fn text(self, seed: u64) -> String {
        let Self { writer, number } = self;
        let mut random = Random::new(seed, u64::from(writer) << 32 | u64::from(number));
        let length = match random.below(50) {
            0 => random.below(LONGEST),
            // Around 4096 bytes (`PIPE_BUF`), above which a write to a pipe is not atomic.
            1..=3 => 3_000 + random.below(3_000),
            _ => random.below(200),
        };
        let length = usize::try_from(length).unwrap_or_default();
        let mut text = format!("{writer}:{number}:");
        while text.len() < length {
            text.push_str(random.pick(PIECES).unwrap_or_default());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Label};

    #[test]
    fn a_label_can_be_read_back() {
        fn check(text: &str, expect: Option<(u32, u32)>) {
            assert_eq!(Label::of(text).map(|label| (label.writer, label.number)), expect, "{text}");
        }
        check("3:14:a:b\nc", Some((3, 14)));
        check("3:14:", Some((3, 14)));
        check("3:14", None);
        check("w:1:x", None);
        check("", None);
    }

    #[test]
    fn messages_differ_and_can_be_made_again() {
        let text = |writer, number| Label { writer, number }.text(5);
        assert_eq!(text(1, 2), text(1, 2));
        assert_ne!(text(1, 2), text(2, 1));
        assert_eq!(Label::of(&text(8, 9)), Some(Label { writer: 8, number: 9 }));
    }

    #[test]
    fn some_are_long_and_none_too_long() {
        let lengths: Vec<usize> = (0..500).map(|number| Label { writer: 0, number }.text(1).len()).collect();
        let longest = usize::try_from(LONGEST).expect("it fits") + 16;
        assert!(lengths.iter().all(|length| *length < longest));
        assert!(lengths.iter().any(|length| *length > 20_000), "{:?}", lengths.iter().max());
        assert!(lengths.iter().filter(|length| **length < 220).count() > 400);
    }
}
