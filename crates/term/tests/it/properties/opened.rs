//! A strict parser of sequences that is independent of the scanner: anything but an exact frame is a failure.

use ringer_term::{Multiplexer, SCREEN_PIECE};

/// Returns the bytes that reach the terminal outside these layers. Fails if a layer would reject its input.
pub(super) fn unwrapped(bytes: &[u8], layers: &[Multiplexer]) -> Vec<u8> {
    layers.iter().fold(bytes.to_vec(), |bytes, layer| match layer {
        Multiplexer::Zellij => bytes,
        Multiplexer::Tmux => out_of_tmux(&bytes),
        Multiplexer::Screen => out_of_screen(&bytes),
        other => panic!("no test opens {other:?}"),
    })
}

fn out_of_tmux(bytes: &[u8]) -> Vec<u8> {
    let inside = bytes.strip_prefix(b"\x1bPtmux;").expect("an envelope for tmux");
    let inside = inside.strip_suffix(b"\x1b\\").expect("the end of tmux's envelope");
    let mut unwrapped = Vec::new();
    let mut rest = inside.iter();
    while let Some(byte) = rest.next() {
        assert!(
            *byte != 0x1b || rest.next() == Some(&0x1b),
            "every ESC is doubled: {}",
            inside.escape_ascii()
        );
        unwrapped.push(*byte);
    }
    unwrapped
}

/// As `ansi.c` of GNU screen reads it: ESC ESC is one ESC of the string and perhaps the start of its end.
fn out_of_screen(bytes: &[u8]) -> Vec<u8> {
    let (mut unwrapped, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let start = rest.len();
        rest = rest.strip_prefix(b"\x1bP").expect("a piece for screen");
        loop {
            match rest {
                [0x1b, b'\\', after @ ..] => {
                    rest = after;
                    break;
                }
                [byte, after @ ..] => {
                    unwrapped.push(*byte);
                    rest = after;
                }
                [] => panic!("a piece without an end: {}", bytes.escape_ascii()),
            }
        }
        assert!(start - rest.len() <= SCREEN_PIECE, "a piece that screen gives up on");
    }
    unwrapped
}

/// Returns the payloads of the OSC sequences in a text, and the plain text between them. Fails on any control outside a
/// frame.
pub(super) fn payloads(text: &str) -> (Vec<&str>, String) {
    let (mut payloads, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(start) = rest.find(is_control) {
        plain += &rest[..start];
        let after =
            rest[start..].strip_prefix("\x1b]").unwrap_or_else(|| panic!("a stray control: {text:?}"));
        let end = after.find(is_control).unwrap_or_else(|| panic!("a sequence without an end: {text:?}"));
        payloads.push(&after[..end]);
        rest = after[end..]
            .strip_prefix("\x1b\\")
            .or_else(|| after[end..].strip_prefix('\x07'))
            .unwrap_or_else(|| panic!("a control inside a sequence: {text:?}"));
    }
    plain += rest;
    (payloads, plain)
}

/// C0, DEL, C1: a `char` of U+0080 to U+009F is what `C2 80` to `C2 9F` spell.
fn is_control(character: char) -> bool {
    matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}')
}
