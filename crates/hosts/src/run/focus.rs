//! Focus reports: finds them in the terminal's input, and tracks in the program's output whether it wants them.

use memchr::memmem::Finder;

const ESC: u8 = 0x1b;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Finds focus reports in input. It never holds a byte back, because keys must arrive at once.
#[derive(Debug, Default)]
pub(crate) struct FocusInput {
    is_pasting: bool,
}

/// The result of one read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Input {
    /// The last focus report.
    pub(crate) has_focus: Option<bool>,
    /// The person did something. Reports and answers of the terminal do not count.
    pub(crate) is_typed: bool,
}

impl FocusInput {
    /// Appends input to `keys`, without focus reports unless the program wants them.
    pub(crate) fn read(&mut self, bytes: &[u8], wants_reports: bool, keys: &mut Vec<u8>) -> Input {
        let mut input = Input::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = memchr::memchr(ESC, rest).unwrap_or(rest.len());
            let (text, from_escape) = rest.split_at(at);
            keys.extend_from_slice(text);
            input.is_typed |= !text.is_empty();
            rest = from_escape;
            if rest.is_empty() {
                break;
            }
            if self.is_pasting {
                if rest.starts_with(PASTE_END) {
                    self.is_pasting = false;
                }
            } else if rest.starts_with(PASTE_START) {
                self.is_pasting = true;
            } else if rest.starts_with(b"\x1b[I") || rest.starts_with(b"\x1b[O") {
                let (report, after) = rest.split_at(3);
                input.has_focus = Some(report == b"\x1b[I");
                if wants_reports {
                    keys.extend_from_slice(report);
                }
                rest = after;
                continue;
            } else if let Some(length) = answer_length(rest) {
                let (answer, after) = rest.split_at(length);
                keys.extend_from_slice(answer);
                rest = after;
                continue;
            }
            let (escape, after) = rest.split_at(1);
            keys.extend_from_slice(escape);
            input.is_typed = true;
            rest = after;
        }
        input
    }
}

/// The length of a terminal's answer to a query, or of the part that was read.
fn answer_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        // A string that ends with BEL or ST.
        b']' | b'P' | b'_' => {
            let end = bytes[2..].iter().position(|byte| matches!(*byte, 0x07 | ESC));
            let end = end.map_or(bytes.len(), |end| 2 + end);
            Some(if bytes[end..].starts_with(b"\x1b\\") { end + 2 } else { (end + 1).min(bytes.len()) })
        }
        b'[' if matches!(bytes.get(2), Some(b'?' | b'>')) => {
            let end = bytes[3..].iter().position(|byte| (0x40..0x7f).contains(byte));
            Some(end.map_or(bytes.len(), |end| 4 + end))
        }
        _ => None,
    }
}

/// The longest sequence that is found if it is split: `CSI ?` and a handful of modes.
const MAX_TAIL: usize = 64;

/// Tracks the output of a program.
#[derive(Debug)]
pub(crate) struct FocusModes {
    /// The unfinished end of the output: an escape sequence or a character.
    tail: Vec<u8>,
    is_wanted: bool,
    mode: Finder<'static>,
    reset: Finder<'static>,
}

impl Default for FocusModes {
    fn default() -> Self {
        Self { tail: Vec::new(), is_wanted: false, mode: Finder::new("1004"), reset: Finder::new("\x1bc") }
    }
}

impl FocusModes {
    /// Reads output for the terminal. Returns true if it turns focus reports off.
    pub(crate) fn read(&mut self, output: &[u8]) -> bool {
        let mut is_off = false;
        if !self.tail.is_empty() {
            // Only sequences that begin in the tail; the others are found below.
            let joint: Vec<u8> = self.tail.iter().chain(output.iter().take(MAX_TAIL)).copied().collect();
            is_off |= self.find(&joint, self.tail.len());
        }
        is_off |= self.find(output, output.len());
        self.keep_tail(output);
        is_off
    }

    /// Finds the sequences that begin before `end`.
    fn find(&mut self, bytes: &[u8], end: usize) -> bool {
        let mut is_off = false;
        let mut last = None;
        for at in self.mode.find_iter(bytes) {
            let Some(start) = memchr::memrchr(0x1b, &bytes[at.saturating_sub(MAX_TAIL)..at])
                .map(|found| at.saturating_sub(MAX_TAIL) + found)
                .filter(|start| *start < end)
            else {
                continue;
            };
            if let Some(on) = sets_focus(&bytes[start..]) {
                last = Some((start, on));
            }
        }
        let reset = self.reset.find_iter(bytes).filter(|start| *start < end).last();
        if let Some((start, on)) = last
            && reset.is_none_or(|reset| reset < start)
        {
            self.is_wanted = on;
            is_off = !on;
        } else if reset.is_some() {
            self.is_wanted = false;
            is_off = true;
        }
        is_off
    }

    fn keep_tail(&mut self, output: &[u8]) {
        self.tail.extend_from_slice(&output[output.len().saturating_sub(MAX_TAIL)..]);
        let start = memchr::memrchr(0x1b, &self.tail)
            .filter(|start| is_open(&self.tail[*start..]) && self.tail.len() - start <= MAX_TAIL)
            .or_else(|| cut_character(&self.tail));
        self.tail.drain(..start.unwrap_or(self.tail.len()));
    }

    /// Returns true if the program wants reports.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Returns true if the output does not end inside a sequence or a character.
    pub(crate) fn is_between_sequences(&self) -> bool {
        self.tail.is_empty()
    }
}

/// Returns true if an escape sequence is unfinished.
fn is_open(sequence: &[u8]) -> bool {
    match sequence.get(1) {
        None => true,
        Some(b'[') => !sequence[2..].iter().any(|byte| (0x40..0x7f).contains(byte)),
        // Intermediate bytes, for example of a character set.
        Some(0x20..0x30) => sequence.len() == 2,
        // The notification filter tracks strings.
        Some(_) => false,
    }
}

/// The position of an unfinished UTF-8 character at the end.
fn cut_character(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80)?;
    let length = match bytes[start] {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => 1,
    };
    (bytes.len() - start < length).then_some(start)
}

/// Returns true for a sequence that sets mode 1004, and false for one that resets it.
fn sets_focus(sequence: &[u8]) -> Option<bool> {
    let parameters = sequence.strip_prefix(b"\x1b[?")?;
    let end = parameters.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    let named = parameters[..end].split(|byte| *byte == b';').any(|mode| mode == b"1004");
    match parameters[end] {
        b'h' if named => Some(true),
        b'l' if named => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], wants: bool, keys: &[u8], has_focus: Option<bool>, is_typed: bool) {
        let mut passed = Vec::new();
        let input = FocusInput::default().read(bytes, wants, &mut passed);
        assert_eq!(passed.escape_ascii().to_string(), keys.escape_ascii().to_string());
        assert_eq!(input, Input { has_focus, is_typed }, "{}", bytes.escape_ascii());
    }

    #[test]
    fn reports_reach_only_a_program_that_wants_them() {
        check(b"\x1b[I", false, b"", Some(true), false);
        check(b"\x1b[I", true, b"\x1b[I", Some(true), false);
        check(b"a\x1b[Ob", false, b"ab", Some(false), true);
        check(b"\x1b[I\x1b[O", false, b"", Some(false), false);
    }

    #[test]
    fn keys_pass_and_answers_are_not_typed() {
        for key in [
            &b"\x1b"[..],
            b"\x1b[",
            b"\x1bOP",
            b"\x1b[A",
            b"\x1b[27u",
            b"\x1b[97;5u",
            b"\x1b[<0;1;1M",
            "é".as_bytes(),
        ] {
            check(key, false, key, None, true);
        }
        for answer in [
            &b"\x1b[?62;c"[..],
            b"\x1b[>1;10;0c",
            b"\x1b]11;rgb:0/0/0\x07",
            b"\x1bP>|kitty\x1b\\",
            b"\x1b_Gi=1;OK\x1b\\",
        ] {
            check(answer, false, answer, None, false);
        }
    }

    #[test]
    fn a_paste_is_left_alone() {
        let mut input = FocusInput::default();
        let mut keys = Vec::new();
        for piece in [&b"\x1b[200~one \x1b[I"[..], b" two\x1b[O", b"\x1b[201~", b"\x1b[O"] {
            input.read(piece, false, &mut keys);
        }
        assert_eq!(keys, b"\x1b[200~one \x1b[I two\x1b[O\x1b[201~");
    }

    fn wanted_after(pieces: &[&[u8]]) -> (bool, bool) {
        let mut modes = FocusModes::default();
        let off = pieces.iter().map(|piece| modes.read(piece)).fold(false, |off, now| off | now);
        (modes.is_wanted(), off)
    }

    #[test]
    fn modes_are_found_alone_and_with_others() {
        for (output, expected) in [
            (&b"\x1b[?1004h"[..], (true, false)),
            (b"\x1b[?1000;1004h text", (true, false)),
            (b"\x1b[?1004;2004h\x1b[?1004l", (false, true)),
            (b"\x1b[?1004l\x1b[?1004h", (true, false)),
            (b"\x1b[?1004h\x1bc", (false, true)),
            (b"\x1b[?10040h\x1b[?11004h 1004 \x1b[1004h", (false, false)),
        ] {
            assert_eq!(wanted_after(&[output]), expected, "{}", output.escape_ascii());
        }
    }

    #[test]
    fn nothing_is_put_into_a_sequence_or_a_character() {
        for (output, expected) in [
            ("text", true),
            ("é", true),
            ("\x1b[31m", true),
            ("\x1b[31", false),
            ("\x1b[?1004", false),
            ("\x1b", false),
            ("\x1b(", false),
            ("\x1b(B", true),
            ("\x1b7", true),
        ] {
            let mut modes = FocusModes::default();
            modes.read(output.as_bytes());
            assert_eq!(modes.is_between_sequences(), expected, "{output:?}");
        }
        let mut modes = FocusModes::default();
        modes.read(&"✳".as_bytes()[..2]);
        assert!(!modes.is_between_sequences());
        modes.read(&"✳".as_bytes()[2..]);
        assert!(modes.is_between_sequences());
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut(cuts in prop::collection::vec(0usize..40, 0..4)) {
            let all: &[u8] = b"ab\x1b[?2004;1004hcd\x1b[31m\x1b[?25l\x1b[?1004lef\x1b[?1004h";
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                let cut = cut.min(all.len());
                pieces.push(&all[from..cut]);
                from = cut;
            }
            pieces.push(&all[from..]);
            prop_assert!(wanted_after(&pieces).0);
        }
    }
}
