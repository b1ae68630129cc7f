//! Tracks whether the program wants focus reports (`CSI ? 1004 h`), and whether bytes may be inserted into its output.

use memchr::memmem::Finder;

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
    use super::*;
    use proptest::prelude::*;

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
