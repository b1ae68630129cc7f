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
