//! A text that is truncated while it is read.

/// Bytes kept of the end of a long text. The end of an agent's last message shows the outcome.
pub(super) const MAX_TAIL: usize = 4 * 1024;

/// A whole text, or the beginning and end of a longer one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TruncatedText {
    pub(super) head: String,
    /// The end of a truncated text; empty for a whole one.
    pub(super) tail: String,
    pub(super) cut: bool,
}

impl TruncatedText {
    /// Keeps at most `most` bytes of a text.
    pub(super) fn of(text: &str, most: usize) -> Self {
        let mut builder = TextBuilder::new(Some(most - MAX_TAIL));
        builder.push(text.as_bytes());
        builder.finish()
    }

    /// The whole text; of a truncated one, its beginning and its end.
    pub(super) fn full(&self) -> String {
        if self.cut { format!("{}\n…\n{}", self.head, self.tail) } else { self.head.clone() }
    }

    /// The last non-blank line, even if the text was truncated.
    pub(super) fn last_line(&self) -> Option<&str> {
        let end = if self.cut { &self.tail } else { &self.head };
        end.trim_end().lines().next_back().map(str::trim)
    }
}

/// Collects a text piece by piece.
#[derive(Debug, Default)]
pub(super) struct TextBuilder {
    /// Limit of the head; `None` keeps nothing.
    most: Option<usize>,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Something between head and tail was dropped.
    cut: bool,
    /// A pending high surrogate.
    high: Option<u32>,
}

impl TextBuilder {
    /// Keeps at most `most` bytes of the beginning and [`MAX_TAIL`] of the rest; `None` keeps nothing.
    pub(super) fn new(most: Option<usize>) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds a piece of the text. A character may span two pieces.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.flush_lone_surrogate();
        self.append(bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(most) = self.most else { return };
        let fits = bytes.len().min(most - self.head.len());
        self.head.extend_from_slice(&bytes[..fits]);
        let rest = &bytes[fits..];
        if !rest.is_empty() {
            self.cut |= self.tail.len() + rest.len() > MAX_TAIL;
            self.tail.extend_from_slice(&rest[rest.len().saturating_sub(MAX_TAIL)..]);
            let excess = self.tail.len().saturating_sub(MAX_TAIL);
            self.tail.drain(..excess);
        }
    }

    /// Adds a UTF-16 unit from a `\u` escape.
    pub(super) fn push_unit(&mut self, unit: u32) {
        let high = self.high.take();
        match (high, unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                self.append_character(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00));
                return;
            }
            (Some(_), _) => self.append_character(0xFFFD),
            (None, _) => {}
        }
        match unit {
            0xD800..=0xDBFF => self.high = Some(unit),
            _ => self.append_character(unit),
        }
    }

    fn append_character(&mut self, code: u32) {
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.append(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn flush_lone_surrogate(&mut self) {
        if self.high.take().is_some() {
            self.append_character(0xFFFD);
        }
    }

    pub(super) fn finish(mut self) -> TruncatedText {
        self.flush_lone_surrogate();
        if self.cut {
            // Cut between characters.
            if let Err(error) = std::str::from_utf8(&self.head)
                && error.error_len().is_none()
            {
                self.head.truncate(error.valid_up_to());
            }
            let inside = self.tail.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.tail.drain(..inside);
        } else {
            self.head.append(&mut self.tail);
        }
        let readable = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        TruncatedText { head: readable(&self.head), tail: readable(&self.tail), cut: self.cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncate(most: usize, pieces: &[&[u8]]) -> TruncatedText {
        let mut builder = TextBuilder::new(Some(most));
        for piece in pieces {
            builder.push(piece);
        }
        builder.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let text = truncate(5, &[b"ab", b"", b"cde"]);
        assert_eq!((text.head.as_str(), text.tail.as_str(), text.cut), ("abcde", "", false));
        let long = "\u{e4}".repeat(MAX_TAIL);
        let text = truncate(5, &[&long.as_bytes()[..7], &long.as_bytes()[7..MAX_TAIL + 5]]);
        assert_eq!((text.head.len(), text.tail.as_str(), text.cut), (MAX_TAIL + 5 + 2, "", false));
    }

    #[test]
    fn what_does_not_fit_is_cut_between_characters() {
        // Two bytes each; the third one does not fit whole, nor does the first of the end.
        let end = "x".repeat(MAX_TAIL - 1);
        let text = truncate(5, &[format!("\u{e4}\u{f6}\u{fc}\u{fc}{end}").as_bytes()]);
        assert_eq!((text.head.as_str(), text.tail, text.cut), ("\u{e4}\u{f6}", end, true));
    }

    #[test]
    fn a_character_in_two_pieces_is_one() {
        assert_eq!(truncate(9, &[b"\xc3", b"\xa4"]).head, "\u{e4}");
    }

    #[test]
    fn of_a_long_text_the_end_is_kept_too() {
        let long = format!("{}\nWAITING", "x".repeat(100_000));
        for step in [1, 7, 1023, 1024, 1025, 100_000] {
            let pieces: Vec<&[u8]> = long.as_bytes().chunks(step).collect();
            let text = truncate(8, &pieces);
            assert_eq!((text.head.as_str(), text.tail.len()), ("xxxxxxxx", MAX_TAIL));
            assert!(text.tail.ends_with("\nWAITING"));
        }
    }

    #[test]
    fn halves_of_a_pair_that_lost_each_other_are_repaired() {
        let check = |units: &[u32], expected: &str| {
            let mut builder = TextBuilder::new(Some(64));
            for unit in units {
                builder.push_unit(*unit);
            }
            assert_eq!(builder.finish().head, expected);
        };
        check(&[0xD83D, 0xDE00], "\u{1f600}");
        check(&[0xD83D], "\u{fffd}");
        check(&[0xDE00], "\u{fffd}");
        check(&[0xD83D, 0xD83D, 0xDE00], "\u{fffd}\u{1f600}");
        check(&[0xD83D, 0x61], "\u{fffd}a");
    }
}
