//! Finds queries for the name and version of the terminal (XTVERSION, `CSI > q`), which the emulator does not know.

use memchr::memmem::find;

/// The beginning of the query.
const BEGINNING: &[u8] = b"\x1b[>";
const ESCAPE: u8 = 0x1b;

/// The part of a query that has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    Escape,
    Bracket,
    /// The whole beginning, and perhaps a parameter of 0.
    Beginning,
}

/// Counts the queries in a program's output, even if they are split among reads. ESC ends any string, so the bytes before it do
/// not matter.
#[derive(Debug, Default)]
pub(super) struct VersionQuestions {
    seen: Seen,
}

impl VersionQuestions {
    /// Returns the number of queries that these bytes complete.
    pub(super) fn count(&mut self, bytes: &[u8]) -> usize {
        let (mut rest, mut count) = (bytes, 0);
        loop {
            if self.seen == Seen::Nothing {
                // The fast path: nearly all output has none.
                let Some(at) = find(rest, BEGINNING) else { break };
                rest = &rest[at + BEGINNING.len()..];
                self.seen = Seen::Beginning;
            }
            let Some((byte, after)) = rest.split_first() else { return count };
            rest = after;
            self.seen = match (self.seen, *byte) {
                (Seen::Escape, b'[') => Seen::Bracket,
                (Seen::Bracket, b'>') | (Seen::Beginning, b'0') => Seen::Beginning,
                (_, ESCAPE) => Seen::Escape,
                (Seen::Beginning, b'q') => {
                    count += 1;
                    Seen::Nothing
                }
                _ => Seen::Nothing,
            };
        }
        self.seen = match rest {
            [.., ESCAPE] => Seen::Escape,
            [.., ESCAPE, b'['] => Seen::Bracket,
            _ => Seen::Nothing,
        };
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(pieces: &[&[u8]]) -> usize {
        let mut questions = VersionQuestions::default();
        pieces.iter().map(|piece| questions.count(piece)).sum()
    }

    #[test]
    fn only_the_question_is_one() {
        assert_eq!(count(&[b"a\x1b[>qb\x1b[>0q\x1b\x1b[>q\x1b]2;t\x1b[>00q"]), 4);
        assert_eq!(count(&[b"\x1b[>1q\x1b[q\x1b[ q\x1b[>c\x1b[>4;1m\x1b[>0;0q[>q\x1b[>"]), 0);
        assert_eq!(count(&[b"\x1b", b"[", b"", b">", b"q", b"q"]), 1);
    }

    proptest! {
        #[test]
        fn it_is_found_wherever_it_is_cut(
            bytes in prop::collection::vec(prop::sample::select(b"\x1b[>0qx".to_vec()), 0..40),
            cut in 0..40_usize,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(count(&[first, second]), count(&[&bytes]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(count(&single), count(&[&bytes]));
        }
    }
}
