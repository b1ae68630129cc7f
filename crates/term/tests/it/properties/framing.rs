//! Compares the scanner with a slow reference implementation, which applies the rules one by one to the whole stream.
//! Titles represent all sequences.

use proptest::prelude::*;
use ringer_term::{Multiplexer, Scanner, TerminalEvent, TerminalEventKind, wrap};

const BEL: u8 = 0x07;
const ESC: u8 = 0x1b;
const CANCEL: [u8; 2] = [0x18, 0x1a];
/// The documented limits.
const LONGEST: usize = 8 * 1024;
const DEEPEST: usize = 4;

/// A stream, or the content of a wrapper.
struct Reading<'a> {
    bytes: &'a [u8],
    depth: usize,
    found: Vec<TerminalEvent>,
    /// The stream contains a wrapper of GNU screen, whose joining the reference does not implement.
    met_screen: bool,
}

impl<'a> Reading<'a> {
    fn new(bytes: &'a [u8], depth: usize) -> Self {
        let mut reading = Self { bytes, depth, found: Vec::new(), met_screen: false };
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                BEL => reading.found.push(TerminalEvent { offset: at as u64, kind: TerminalEventKind::Bell }),
                ESC => {
                    at = reading.escape(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        reading
    }

    /// Returns the index after the sequence that starts with the ESC at `at`.
    fn escape(&mut self, mut start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.bytes.get(at) {
            match *byte {
                ESC => start = at,
                BEL => self.found.push(TerminalEvent { offset: at as u64, kind: TerminalEventKind::Bell }),
                control if CANCEL.contains(&control) => return at + 1,
                0..0x20 => {}
                b']' => return self.osc(start, at + 1),
                b'P' => return self.dcs(start, at + 1),
                b'X' | b'^' | b'_' => return self.string(at + 1, &[]).1,
                _ => return at + 1,
            }
            at += 1;
        }
        at
    }

    /// Returns the index of the terminator, or `None` if the string is broken off, and the index at which to continue.
    fn string(&mut self, start: usize, ends: &[u8]) -> (Option<usize>, usize) {
        let is_end = |byte: &u8| *byte == ESC || CANCEL.contains(byte) || ends.contains(byte);
        let Some(length) = self.bytes[start..].iter().position(is_end) else {
            return (None, self.bytes.len());
        };
        let end = start + length;
        match (self.bytes[end], self.bytes.get(end + 1)) {
            (ESC, Some(b'\\')) => (Some(end), end + 2),
            (ESC, _) => (None, self.escape(end)),
            (byte, _) => (ends.contains(&byte).then_some(end), end + 1),
        }
    }

    fn osc(&mut self, start: usize, text: usize) -> usize {
        let (end, next) = self.string(text, &[BEL]);
        let payload = end.map_or(&[][..], |end| &self.bytes[text..end]);
        if let Some(title) = payload.strip_prefix(b"0;").filter(|_| payload.len() <= LONGEST) {
            let kind = TerminalEventKind::Title(String::from_utf8_lossy(title).into_owned());
            self.found.push(TerminalEvent { offset: start as u64, kind });
        }
        next
    }

    fn dcs(&mut self, start: usize, text: usize) -> usize {
        if self.depth < DEEPEST && self.bytes[text..].starts_with(b"tmux;") {
            return self.tmux(start, text + 5);
        }
        self.met_screen |= self.depth < DEEPEST && self.bytes.get(text) == Some(&ESC);
        self.string(text, &[]).1
    }

    fn tmux(&mut self, start: usize, text: usize) -> usize {
        let (mut inside, mut at) = (Vec::new(), text);
        let next = loop {
            match (self.bytes.get(at), self.bytes.get(at + 1)) {
                (Some(&ESC), Some(&ESC)) => {
                    inside.push(ESC);
                    at += 2;
                }
                (Some(&ESC), Some(b'\\')) => break Ok(at + 2),
                (Some(&ESC), _) => break Err(at),
                (Some(byte), _) if CANCEL.contains(byte) => break Ok(at + 1),
                (Some(byte), _) => {
                    inside.push(*byte);
                    at += 1;
                }
                (None, _) => break Ok(at),
            }
        };
        let inner = Reading::new(&inside, self.depth + 1);
        self.met_screen |= inner.met_screen;
        self.found
            .extend(inner.found.into_iter().map(|event| TerminalEvent { offset: start as u64, ..event }));
        next.unwrap_or_else(|escape| self.escape(escape))
    }
}

const PIECES: &[&[u8]] = &[
    b"\x1b",
    b"\x07",
    b"\x18",
    b"\x1a",
    b"\\",
    b"]",
    b"]0;",
    b"P",
    b"Pq",
    b"[",
    b"_",
    b"\x1b\\",
    b"\x1b\x1b",
    b"\x1b]0;",
    b"\x1b]0;half",
    b"\x1b]9;4;1;50\x07",
    b"\x1b[31m",
    b"\x1b_G",
    b"\x1bPq",
    b"\x1bPtmux;",
    b"\x1bPtmux;\x1b\x1b]0;",
    b"tmux;",
    b"text",
    b"\x9c",
    b"\xc2\x9c",
    b"\r\n",
    // Controls inside an escape sequence.
    b"\x1b\0]0;null\x07",
    b"\x1b\x07]0;bell\x07",
    b"\x1b\x18]0;cancel\x07",
    b"\x1b\x1b]0;escape\x07",
];

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let title = (0usize..6, prop::sample::select(vec!["\x07", "\x1b\\", "\x18", "\x1bc", ""])).prop_map(
        |(depth, end)| wrap(format!("\x1b]0;depth {depth}{end}").as_bytes(), &vec![Multiplexer::Tmux; depth]),
    );
    // `0;` counts.
    let longest = (LONGEST - 4..LONGEST + 2)
        .prop_map(|length| [b"\x1b]0;", vec![b'x'; length].as_slice(), b"\x07"].concat());
    let fragment = prop_oneof![
        12 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        4 => title,
        1 => longest,
    ];
    prop::collection::vec(fragment, 0..16).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn the_scanner_matches_the_reference(bytes in stream()) {
        let expected = Reading::new(&bytes, 0);
        prop_assume!(!expected.met_screen);
        let mut found = Vec::new();
        Scanner::new().feed(&bytes, |event| {
            if matches!(event.kind, TerminalEventKind::Title(_) | TerminalEventKind::Bell) {
                found.push(event);
            }
        });
        prop_assert_eq!(found, expected.found, "{}", bytes.escape_ascii());
    }
}
