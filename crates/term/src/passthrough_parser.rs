//! Framing: finds OSC sequences and bells in a stream, through any passthrough wrappers around them.
//!
//! One [`PassthroughParser`] reads one stream. The content of a wrapper is also a stream and is read by a parser inside the
//! first, so sequences wrapped for tmux inside tmux inside screen are reported like unwrapped ones.

use memchr::memchr2;

use crate::interpret::{could_be_notification, is_notification};

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;

/// An OSC longer than this is read to its end and dropped.
pub(crate) const MAX_OSC: usize = 8 * 1024;
/// GNU screen leaves string mode after this many bytes, so an unterminated wrapper cannot hide the rest.
const MAX_SCREEN_PIECE: usize = 767;
/// Wrappers nested deeper than this are skipped.
const MAX_DEPTH: u8 = 4;

/// A finding of the parser.
pub(crate) enum Token<'a> {
    Bell,
    /// The payload of an OSC, between `ESC ]` and its end.
    Osc(&'a [u8]),
}

/// Called with the offset at which a token's sequence starts, and the token.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(u64, Token<'_>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Plain text. The parameters of CSI sequences count as text: nothing in them is reported.
    Ground,
    /// After ESC.
    Escape,
    Osc,
    OscEscape,
    /// After `ESC P`, with this many bytes of `tmux;` seen.
    Dcs(u8),
    /// In a string that is not reported: another DCS, SOS, PM, APC.
    Skip,
    SkipEscape,
    Tmux,
    TmuxEscape,
    /// In a piece of GNU screen's passthrough.
    Screen,
    ScreenEscape,
    /// Directly after a piece that ended inside a sequence, which the next piece continues.
    ScreenGap,
    ScreenGapEscape,
}

#[derive(Debug)]
pub(crate) struct PassthroughParser {
    state: State,
    /// The offset at which the current sequence starts.
    start: u64,
    /// The payload of the current OSC, at most [`MAX_OSC`] bytes.
    payload: Vec<u8>,
    /// The current OSC is too long, and its bytes are no longer kept.
    too_long: bool,
    /// Bytes of the current screen piece.
    piece: usize,
    depth: u8,
    /// True if the sequence that ended last is a notification, or a wrapper that contains only notifications.
    is_notification: bool,
    /// True if this wrapper has contained something other than notifications.
    is_mixed: bool,
    /// Reads the content of the current wrapper. Created for the first wrapper.
    inner: Option<Box<PassthroughParser>>,
}

const TMUX: &[u8] = b"tmux;";

impl PassthroughParser {
    pub(crate) fn new() -> Self {
        Self::at_depth(0)
    }

    fn at_depth(depth: u8) -> Self {
        Self {
            state: State::Ground,
            start: 0,
            payload: Vec::new(),
            too_long: false,
            piece: 0,
            depth,
            is_notification: false,
            is_mixed: false,
            inner: None,
        }
    }

    /// Reads more of the stream; `base` is the offset of its first byte.
    pub(crate) fn feed(&mut self, bytes: &[u8], base: u64, sink: Sink<'_>) {
        let mut at = 0;
        while at < bytes.len() {
            at = self.step(bytes, at, base, sink);
        }
    }

    /// Reads from `at` to the next position at which the state may have changed, and returns it. That is `at` itself if the
    /// byte there must be read again in the new state.
    pub(crate) fn step(&mut self, bytes: &[u8], at: usize, base: u64, sink: Sink<'_>) -> usize {
        let was_ground = self.state == State::Ground;
        let next = match self.state {
            State::Ground => self.ground(bytes, at, base, sink),
            State::Osc => self.osc(bytes, at, sink),
            State::Skip => self.skip(bytes, at),
            State::Tmux => self.tmux(bytes, at, sink),
            _ => self.byte(bytes[at], base + at as u64, sink).map_or(at, |()| at + 1),
        };
        // A sequence ends where the state returns to ground. Text in a wrapper is not a notification either.
        let is_text = was_ground && next > at + usize::from(self.state != State::Ground);
        if is_text || !was_ground && self.state == State::Ground && !self.is_notification {
            self.is_mixed = true;
        }
        next
    }

    /// Returns true outside a sequence.
    pub(crate) fn is_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// Returns true directly after an ESC.
    pub(crate) fn is_after_escape(&self) -> bool {
        self.state == State::Escape
    }

    /// Returns true after an ESC that either ends the sequence or begins another one.
    pub(crate) fn may_end(&self) -> bool {
        matches!(
            self.state,
            State::OscEscape | State::SkipEscape | State::TmuxEscape | State::ScreenGapEscape
        )
    }

    /// True if the sequence that ended last is a notification, or a wrapper that contains only notifications.
    pub(crate) fn was_notification(&self) -> bool {
        self.is_notification
    }

    /// Returns true if the current sequence may still become a notification, or a wrapper that contains only notifications.
    pub(crate) fn could_be_notification(&self) -> bool {
        let inner_could = || {
            self.inner
                .as_ref()
                .is_none_or(|inner| !inner.is_mixed && (inner.is_ground() || inner.could_be_notification()))
        };
        match self.state {
            State::Ground | State::Skip | State::SkipEscape => false,
            State::Escape | State::Dcs(_) => true,
            State::Osc | State::OscEscape => !self.too_long && could_be_notification(&self.payload),
            State::Tmux
            | State::TmuxEscape
            | State::Screen
            | State::ScreenEscape
            | State::ScreenGap
            | State::ScreenGapEscape => inner_could(),
        }
    }

    /// The fast path: skips to the next ESC or BEL at memory speed.
    fn ground(&mut self, bytes: &[u8], mut at: usize, base: u64, sink: Sink<'_>) -> usize {
        while let Some(found) = next_control(bytes, at) {
            at = found;
            if bytes[at] == BEL {
                sink(base + at as u64, Token::Bell);
                at += 1;
            } else if bytes.get(at + 1) == Some(&b'[') {
                at += 2;
            } else {
                self.start = base + at as u64;
                self.is_notification = false;
                self.state = State::Escape;
                return at + 1;
            }
        }
        bytes.len()
    }

    fn osc(&mut self, bytes: &[u8], at: usize, sink: Sink<'_>) -> usize {
        let rest = &bytes[at..];
        let end = end_of_string(rest);
        self.keep(&rest[..end]);
        match rest.get(end) {
            None => return bytes.len(),
            Some(&ESC) => self.state = State::OscEscape,
            Some(&BEL) => self.end_osc(sink),
            Some(_) => self.state = State::Ground,
        }
        at + end + 1
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.payload.len() + bytes.len() > MAX_OSC {
            self.too_long = true;
            self.payload.clear();
        }
        if !self.too_long {
            self.payload.extend_from_slice(bytes);
        }
    }

    fn end_osc(&mut self, sink: Sink<'_>) {
        self.state = State::Ground;
        if !self.too_long {
            self.is_notification = is_notification(&self.payload);
            sink(self.start, Token::Osc(&self.payload));
        }
    }

    /// BEL is an ordinary byte in these strings, so only ESC, CAN and SUB end the search.
    fn skip(&mut self, bytes: &[u8], at: usize) -> usize {
        match memchr::memchr3(ESC, CAN, SUB, &bytes[at..]) {
            None => bytes.len(),
            Some(found) => {
                self.state = if bytes[at + found] == ESC { State::SkipEscape } else { State::Ground };
                at + found + 1
            }
        }
    }

    fn tmux(&mut self, bytes: &[u8], at: usize, sink: Sink<'_>) -> usize {
        let rest = &bytes[at..];
        let end = memchr::memchr3(ESC, CAN, SUB, rest).unwrap_or(rest.len());
        self.feed_inner(&rest[..end], sink);
        match rest.get(end) {
            None => return bytes.len(),
            Some(&ESC) => self.state = State::TmuxEscape,
            Some(_) => self.state = State::Ground,
        }
        at + end + 1
    }

    /// Handles the states that read one byte at a time. `None` if the byte must be read again in the new state.
    fn byte(&mut self, byte: u8, offset: u64, sink: Sink<'_>) -> Option<()> {
        match self.state {
            State::Ground | State::Osc | State::Skip | State::Tmux => None,
            State::Escape => self.after_escape(byte, offset, sink),
            State::OscEscape if byte == b'\\' => {
                self.end_osc(sink);
                Some(())
            }
            State::SkipEscape if byte == b'\\' => self.enter(State::Ground),
            State::TmuxEscape if byte == b'\\' => self.end_wrapper(),
            State::TmuxEscape if byte == ESC => {
                self.feed_inner(&[ESC], sink);
                self.enter(State::Tmux)
            }
            State::Dcs(seen) => self.dcs(seen, byte),
            State::Screen => self.screen(byte, sink),
            State::ScreenEscape => self.screen_escape(byte, sink),
            State::ScreenGap if byte == ESC => self.enter(State::ScreenGapEscape),
            State::ScreenGap => {
                self.state = State::Ground;
                None
            }
            State::ScreenGapEscape if byte == b'P' => {
                self.piece = 0;
                self.enter(State::Screen)
            }
            // ESC and any other byte aborts the string and starts a new sequence.
            State::OscEscape | State::SkipEscape | State::TmuxEscape | State::ScreenGapEscape => {
                self.restart_escape(offset)
            }
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads as the result of a step: the byte is used up")]
    fn enter(&mut self, state: State) -> Option<()> {
        self.state = state;
        Some(())
    }

    /// Starts a new sequence at the ESC before `offset`.
    fn restart_escape(&mut self, offset: u64) -> Option<()> {
        self.start = offset - 1;
        self.is_mixed = true;
        self.is_notification = false;
        self.state = State::Escape;
        None
    }

    fn after_escape(&mut self, byte: u8, offset: u64, sink: Sink<'_>) -> Option<()> {
        match byte {
            b']' => {
                self.payload.clear();
                self.too_long = false;
                self.enter(State::Osc)
            }
            b'P' => self.enter(State::Dcs(0)),
            b'X' | b'^' | b'_' => self.enter(State::Skip),
            ESC => {
                self.start = offset;
                Some(())
            }
            // Controls take effect inside an escape sequence without ending it, except the two that cancel it.
            BEL => {
                sink(offset, Token::Bell);
                Some(())
            }
            CAN | SUB => self.enter(State::Ground),
            0x00..0x20 => Some(()),
            _ => self.enter(State::Ground),
        }
    }

    /// Identifies a DCS: tmux's begins with `tmux;`, screen's with the ESC of the sequence that it wraps.
    fn dcs(&mut self, seen: u8, byte: u8) -> Option<()> {
        if self.depth < MAX_DEPTH {
            if byte == TMUX[usize::from(seen)] {
                if usize::from(seen) + 1 < TMUX.len() {
                    return self.enter(State::Dcs(seen + 1));
                }
                self.begin_inner();
                return self.enter(State::Tmux);
            }
            if seen == 0 && byte == ESC {
                self.begin_inner();
                self.piece = 1;
                return self.enter(State::ScreenEscape);
            }
        }
        self.state = State::Skip;
        None
    }

    fn screen(&mut self, byte: u8, sink: Sink<'_>) -> Option<()> {
        self.piece += 1;
        match byte {
            CAN | SUB => self.enter(State::Ground),
            _ if self.piece > MAX_SCREEN_PIECE => {
                self.state = State::Ground;
                None
            }
            ESC => self.enter(State::ScreenEscape),
            _ => {
                self.feed_inner(&[byte], sink);
                Some(())
            }
        }
    }

    fn screen_escape(&mut self, byte: u8, sink: Sink<'_>) -> Option<()> {
        match byte {
            b'\\' => {
                let broke_off = self.inner.as_ref().is_some_and(|inner| !inner.is_ground());
                if broke_off { self.enter(State::ScreenGap) } else { self.end_wrapper() }
            }
            ESC => {
                self.piece += 1;
                self.feed_inner(&[ESC], sink);
                Some(())
            }
            _ => {
                self.feed_inner(&[ESC], sink);
                self.state = State::Screen;
                None
            }
        }
    }

    fn begin_inner(&mut self) {
        let depth = self.depth + 1;
        let inner = self.inner.get_or_insert_with(|| Box::new(Self::at_depth(depth)));
        inner.state = State::Ground;
        inner.is_mixed = false;
        inner.is_notification = false;
    }

    fn end_wrapper(&mut self) -> Option<()> {
        self.is_notification = self
            .inner
            .as_ref()
            .is_some_and(|inner| inner.is_ground() && !inner.is_mixed && inner.is_notification);
        self.enter(State::Ground)
    }

    fn feed_inner(&mut self, bytes: &[u8], sink: Sink<'_>) {
        // Findings inside are reported at the offset of the wrapper.
        let wrapper = self.start;
        if let Some(inner) = &mut self.inner {
            inner.feed(bytes, wrapper + 1, &mut |_, token| sink(wrapper, token));
        }
    }
}

/// The index of the next ESC or BEL.
///
/// In coloured output the next one is about a dozen bytes away, and calling `memchr` costs more than reading these. So the
/// first few words are checked here.
fn next_control(bytes: &[u8], from: usize) -> Option<usize> {
    const NEAR: usize = 4;
    let mut at = from;
    for _ in 0..NEAR {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { break };
        let found = controls_in(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += size_of::<u64>();
    }
    memchr2(ESC, BEL, &bytes[at..]).map(|found| at + found)
}

/// Returns a word whose lowest set bit is in the first byte that is ESC or BEL; zero if there is none.
fn controls_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    // Subtracting one borrows through a zero byte; only bytes above a true zero can be marked falsely.
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    zero_bytes(word ^ (ONES * u64::from(ESC))) | zero_bytes(word ^ (ONES * u64::from(BEL)))
}

/// Returns the index of the first byte that ends or aborts an OSC, or the length.
fn end_of_string(bytes: &[u8]) -> usize {
    let end = memchr2(ESC, BEL, bytes).unwrap_or(bytes.len());
    memchr2(CAN, SUB, &bytes[..end]).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        PassthroughParser::new().feed(bytes, 0, &mut |offset, token| {
            found.push(match token {
                Token::Bell => (offset, "BEL".to_owned()),
                Token::Osc(payload) => (offset, String::from_utf8_lossy(payload).into_owned()),
            });
        });
        found
    }

    fn check(bytes: &[u8], expected: &[(u64, &str)]) {
        let found = tokens(bytes);
        let found: Vec<(u64, &str)> = found.iter().map(|(offset, text)| (*offset, text.as_str())).collect();
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }

    #[test]
    fn both_terminators_and_bells() {
        check(b"a\x1b]0;x\x07b\x07", &[(1, "0;x"), (8, "BEL")]);
        check(b"\x1b]0;x\x1b\\", &[(0, "0;x")]);
        check(b"\x1b[3\x071m\x07", &[(3, "BEL"), (6, "BEL")]);
        check(b"\x1b\x07]0;x\x07", &[(1, "BEL"), (0, "0;x")]);
    }

    #[test]
    fn eight_bit_controls_are_data() {
        check(b"\x9d0;x\x07", &[(4, "BEL")]);
        check("\x1b]0;\u{9c}ü\x07".as_bytes(), &[(0, "0;\u{9c}ü")]);
    }

    #[test]
    fn incomplete_sequences_leave_no_tokens() {
        check(b"\x1b]0;x\x18\x07", &[(6, "BEL")]);
        check(b"\x1b]0;x\x1a\x07", &[(6, "BEL")]);
        check(b"\x1b]0;x\x1b]2;y\x07", &[(5, "2;y")]);
        check(b"\x1b]0;x\x1b[0m\x07", &[(9, "BEL")]);
        check(b"\x1b\x1b]0;x\x07", &[(1, "0;x")]);
    }

    #[test]
    fn other_strings_hide_their_content() {
        check(b"\x1b_Gf=100;AA\x07AA\x1b\\\x07", &[(16, "BEL")]);
        check(b"\x1bPq#0;2\x07;0\x1b\\\x1b]0;x\x07", &[(12, "0;x")]);
        check(b"\x1bP\x1b\\\x07", &[(4, "BEL")]);
        check(b"\x1bPq\x1b]0;x\x07", &[(3, "0;x")]);
        check(b"\x1bPtmuxinator\x1b\\\x07", &[(14, "BEL")]);
    }

    #[test]
    fn tmux_passthrough_is_unwrapped() {
        check(b"ab\x1bPtmux;\x1b\x1b]9;x\x07\x1b\\c\x07", &[(2, "9;x"), (19, "BEL")]);
        check(b"\x1bPtmux;\x1b\x1b]9;x\x1b\x1b\\\x1b\\", &[(0, "9;x")]);
        check(b"\x1bPtmux;\x07\x1b\\", &[(0, "BEL")]);
        // Unterminated: the next sequence ends it.
        check(b"\x1bPtmux;\x1b\x1b]9;x\x1b]0;y\x07", &[(13, "0;y")]);
    }

    #[test]
    fn screen_passthrough_is_unwrapped_across_pieces() {
        check(b"\x1bP\x1b]9;x\x07\x1b\\\x07", &[(0, "9;x"), (10, "BEL")]);
        check(b"\x1bP\x1b]9;x\x1b\x1b\\\x1bP\\\x1b\\", &[(0, "9;x")]);
        check(b"\x1bP\x1b]9;ab\x1b\\\x1bPcd\x1b\\\x1bPef\x07\x1b\\\x07", &[(0, "9;abcdef"), (23, "BEL")]);
        // A piece that does not follow directly is not a continuation.
        check(b"\x1bP\x1b]9;ab\x1b\\ \x1bPcd\x07\x1b\\\x1b]0;y\x07", &[(18, "0;y")]);
    }

    #[test]
    fn an_endless_screen_piece_ends_by_itself() {
        let mut bytes = b"\x1bP\x1b]9;".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', MAX_SCREEN_PIECE));
        bytes.push(BEL);
        check(&bytes, &[(bytes.len() as u64 - 1, "BEL")]);
    }

    #[test]
    fn nesting_has_a_limit() {
        use crate::multiplexer::{Multiplexer, wrap};
        for depth in 1..=8 {
            let wrapped = wrap(b"\x1b]9;x\x07", &vec![Multiplexer::Tmux; depth]);
            let (mut layer, mut found) = (PassthroughParser::new(), 0);
            layer.feed(&wrapped, 0, &mut |_, _| found += 1);
            assert!(found == 1 || depth > usize::from(MAX_DEPTH), "{depth}");
            let layers = std::iter::successors(Some(&layer), |layer| layer.inner.as_deref()).count();
            assert_eq!(layers, 1 + depth.min(usize::from(MAX_DEPTH)));
        }
    }

    #[test]
    fn a_long_osc_costs_no_memory() {
        let mut layer = PassthroughParser::new();
        layer.feed(b"\x1b]0;", 0, &mut |_, _| {});
        let block = vec![b'x'; 65536];
        for _ in 0..1024 {
            layer.feed(&block, 0, &mut |_, _| {});
        }
        assert!(layer.payload.capacity() <= MAX_OSC);
        let mut found = 0;
        layer.feed(b"\x07\x1b]0;y\x07", 0, &mut |_, _| found += 1);
        assert_eq!(found, 1, "the long one is dropped, the next one is read");
    }
}
