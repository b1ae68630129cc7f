//! Limits the memory that unterminated strings take in the emulator: the text of an OSC, DCS, APC, PM or SOS is truncated.

use memchr::memchr;

/// The longest string. Longer titles and links are of no use.
const MAX_STRING: usize = 256 * 1024;
/// The longest clipboard text (OSC 52): 1 MiB as base64, and the parameters before it.
const MAX_COPY: usize = (1024 * 1024_usize).div_ceil(3) * 4 + 16;
const COPY: &[u8] = b"52;";
const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a string, after `had` bytes. `is_copy` is true while it may be OSC 52.
    String { had: usize, is_copy: bool },
}

/// Passes on a program's output without the excess of long strings.
#[derive(Debug, Default)]
pub(crate) struct StringLimit {
    state: State,
}

impl StringLimit {
    /// Calls `pass` for each piece of the output. Reads may end anywhere.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Text => {
                    let found = memchr(ESCAPE, rest);
                    let length = found.map_or(rest.len(), |at| at + 1);
                    pass(&rest[..length]);
                    self.state = if found.is_some() { State::Escape } else { State::Text };
                    length
                }
                State::Escape => {
                    pass(&rest[..1]);
                    self.state = match rest[0] {
                        b']' | b'P' | b'_' | b'^' | b'X' => {
                            State::String { had: 0, is_copy: rest[0] == b']' }
                        }
                        // These bytes do not end the sequence.
                        0x00..=0x17 | 0x19 | ESCAPE..=0x1f | 0x7f.. => State::Escape,
                        _ => State::Text,
                    };
                    1
                }
                State::String { had, is_copy } => self.string(rest, had, is_copy, &mut pass),
            };
            rest = &rest[taken..];
        }
    }

    /// Processes the bytes of a string up to its end.
    fn string(&mut self, rest: &[u8], had: usize, is_copy: bool, pass: &mut impl FnMut(&[u8])) -> usize {
        let is_end = |byte: &u8| matches!(*byte, ESCAPE | BELL | CANCEL | SUBSTITUTE);
        let end = rest.iter().position(is_end);
        let text = &rest[..end.unwrap_or(rest.len())];
        let is_copy = is_copy && COPY.iter().skip(had).zip(text).all(|(byte, own)| byte == own);
        let most = if is_copy { MAX_COPY } else { MAX_STRING };
        let room = most.saturating_sub(had).min(text.len());
        pass(&text[..room]);
        let had = had.saturating_add(text.len());
        match end {
            None => {
                self.state = State::String { had, is_copy };
                rest.len()
            }
            Some(at) => {
                pass(&rest[at..=at]);
                // ESC ends the string, and begins the next sequence.
                self.state = if rest[at] == ESCAPE { State::Escape } else { State::Text };
                at + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut limit, mut out) = (StringLimit::default(), Vec::new());
        for piece in pieces {
            limit.feed(piece, |bytes| out.extend_from_slice(bytes));
        }
        out
    }

    #[test]
    fn a_string_without_an_end_is_cut() {
        let flood = vec![b'a'; 3 * MAX_STRING];
        let out = passed(&[b"x\x1b]2;", &flood, &flood, b"\x07y\x1b]2;t\x1b\\z"]);
        assert_eq!(out.len(), b"x\x1b]".len() + MAX_STRING + b"\x07y\x1b]2;t\x1b\\z".len());
        assert!(out.ends_with(b"a\x07y\x1b]2;t\x1b\\z"));
    }

    #[test]
    fn what_is_copied_may_be_longer_but_not_without_an_end() {
        let copy = [b"\x1b]52;c;", &vec![b'a'; 1_398_104][..], b"\x07"].concat();
        assert_eq!(passed(&[&copy]), copy);
        assert_eq!(passed(&[&copy[..3], &copy[3..4], &copy[4..]]), copy);
        let flood = vec![b'a'; 2 * MAX_COPY];
        assert_eq!(passed(&[b"\x1b]52;", &flood]).len(), b"\x1b]".len() + MAX_COPY);
        for other in [&b"\x1b]5"[..], b"\x1b]53;", b"\x1bP52;", b"\x1b]152;"] {
            assert_eq!(passed(&[other, &flood]).len(), 2 + MAX_STRING);
        }
    }

    #[test]
    fn controls_after_an_escape_byte_do_not_hide_a_string() {
        let flood = vec![b'a'; 3 * MAX_STRING];
        assert_eq!(passed(&[b"\x1b\n\x7f]2;", &flood]).len(), b"\x1b\n\x7f]".len() + MAX_STRING);
    }

    proptest! {
        #[test]
        fn what_is_short_passes_as_it_is_wherever_it_is_cut(
            bytes in prop::collection::vec(prop_oneof![
                Just(ESCAPE), Just(BELL), Just(b']'), Just(b'\\'), Just(b'P'), Just(CANCEL), any::<u8>(),
            ], 0..300),
            at in 0..300usize,
        ) {
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(passed(&[first, second]), bytes);
        }
    }
}
