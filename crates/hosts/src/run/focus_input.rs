//! Finds focus reports among the input of the terminal.

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

#[cfg(test)]
mod tests {
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
}
