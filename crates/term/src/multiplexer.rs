//! Multiplexers: which ones are between a program and its terminal, and how a sequence passes through them.

use crate::env::Env;

const ESC: u8 = 0x1b;
/// The string terminator, which ends a DCS.
const ST: &[u8] = b"\x1b\\";

/// The longest piece for GNU screen, including the wrapper. Screen keeps at most 767 bytes of a string and gives up on a
/// longer one.
pub const SCREEN_PIECE: usize = 767;

/// A program that shows one terminal inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Multiplexer {
    /// Zellij; from 0.44.1 on it passes notifications on without a wrapper.
    Zellij,
    /// tmux; passes wrapped sequences on, if `allow-passthrough` is set.
    Tmux,
    /// GNU screen; passes wrapped sequences on, in pieces of at most [`SCREEN_PIECE`] bytes.
    Screen,
}

impl Multiplexer {
    /// The name used in output and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zellij => "zellij",
            Self::Tmux => "tmux",
            Self::Screen => "screen",
        }
    }
}

/// The multiplexers around a process, nearest layer first.
///
/// The variables of an outer layer leak into the inner one, so with several layers the order follows from `TERM`, which each
/// layer sets itself: `tmux…` by tmux, `screen.…` by GNU screen. Zellij leaves `TERM` alone and comes first otherwise.
pub(crate) fn multiplexers(env: &Env) -> Vec<Multiplexer> {
    let mut layers: Vec<Multiplexer> =
        [("ZELLIJ", Multiplexer::Zellij), ("TMUX", Multiplexer::Tmux), ("STY", Multiplexer::Screen)]
            .into_iter()
            .filter(|(variable, layer)| {
                env.get(variable).is_some() && (*layer != Multiplexer::Tmux || env.is_in_tmux())
            })
            .map(|(_, layer)| layer)
            .collect();
    let term = env.get("TERM").unwrap_or_default();
    let nearest = if term.starts_with("tmux") {
        Some(Multiplexer::Tmux)
    } else if term.starts_with("screen.") {
        Some(Multiplexer::Screen)
    } else {
        None
    };
    // A stable sort: only the nearest moves, the rest keep their order.
    layers.sort_by_key(|layer| Some(*layer) != nearest);
    layers
}

/// Wraps a sequence so that it passes through every layer (nearest first) unchanged.
///
/// The nearest multiplexer unwraps first, so its wrapper is added last. Do not wrap a bell: a bare one makes tmux and screen
/// flag the window, which is what the person wants to see.
///
/// ```
/// use ringer_term::{wrap, Multiplexer};
///
/// let wrapped = wrap(b"\x1b]9;done\x1b\\", &[Multiplexer::Tmux]);
/// assert_eq!(wrapped, b"\x1bPtmux;\x1b\x1b]9;done\x1b\x1b\\\x1b\\");
/// ```
pub fn wrap(sequence: &[u8], layers: &[Multiplexer]) -> Vec<u8> {
    layers.iter().rev().fold(sequence.to_vec(), |inner, layer| match layer {
        Multiplexer::Zellij => inner,
        Multiplexer::Tmux => wrap_for_tmux(&inner),
        Multiplexer::Screen => wrap_for_screen(&inner),
    })
}

fn wrap_for_tmux(inner: &[u8]) -> Vec<u8> {
    let mut wrapped = Vec::with_capacity(inner.len() + 16);
    wrapped.extend_from_slice(b"\x1bPtmux;");
    for &byte in inner {
        if byte == ESC {
            wrapped.push(ESC);
        }
        wrapped.push(byte);
    }
    wrapped.extend_from_slice(ST);
    wrapped
}

/// Wraps in pieces that screen can hold. It never cuts inside a character, and always cuts between the two bytes of an inner
/// ST, which would otherwise end the piece.
fn wrap_for_screen(inner: &[u8]) -> Vec<u8> {
    const ROOM: usize = SCREEN_PIECE - 4;
    let mut wrapped = Vec::with_capacity(inner.len() + 16);
    let inner = without_torn_characters(inner);
    let mut rest = inner.as_slice();
    while !rest.is_empty() {
        let st = rest.windows(2).position(|pair| pair == ST).map_or(rest.len(), |at| at + 1);
        let mut cut = st.min(ROOM);
        if cut < rest.len() {
            let floor = cut.saturating_sub(3);
            while cut > floor && is_continuation(rest[cut]) {
                cut -= 1;
            }
        }
        let (piece, after) = rest.split_at(cut.max(1));
        wrapped.extend_from_slice(b"\x1bP");
        wrapped.extend_from_slice(piece);
        wrapped.extend_from_slice(ST);
        rest = after;
    }
    wrapped
}

/// In UTF-8 mode GNU screen passes on one byte per character, the lowest of its code point: an ESC for ě (U+011B), a BEL for ć
/// (U+0107). So characters beyond Latin-1 are replaced; OSC 99 sends them as base64, the other protocols lose them.
fn without_torn_characters(inner: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(inner) {
        Ok(text) => text.chars().map(|c| if c > '\u{ff}' { '?' } else { c }).collect::<String>().into_bytes(),
        Err(_) => inner.iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_layers(variables: &[(&str, &str)], expected: &[Multiplexer]) {
        assert_eq!(multiplexers(&Env::new(variables.iter().copied())), expected, "{variables:?}");
    }

    #[test]
    fn nearest_layer_comes_first() {
        use Multiplexer::{Screen, Tmux, Zellij};
        check_layers(&[], &[]);
        check_layers(&[("TMUX", "1")], &[Tmux]);
        check_layers(&[("ZELLIJ", "0"), ("TMUX", "1"), ("STY", "1")], &[Zellij, Tmux, Screen]);
        // tmux started inside Zellij, and inside screen.
        check_layers(&[("ZELLIJ", "0"), ("TMUX", "1"), ("TERM", "tmux-256color")], &[Tmux, Zellij]);
        check_layers(&[("TMUX", "1"), ("STY", "1"), ("TERM", "screen.tmux-256color")], &[Screen, Tmux]);
        check_layers(&[("TMUX", "1"), ("STY", "1"), ("TERM", "screen")], &[Tmux, Screen]);
    }

    #[test]
    fn zellij_needs_no_wrapper() {
        assert_eq!(wrap(b"\x1b]9;x\x07", &[Multiplexer::Zellij]), b"\x1b]9;x\x07");
    }

    #[test]
    fn the_nearest_layers_envelope_is_outermost() {
        let wrapped = wrap(b"\x1b]9;x\x07", &[Multiplexer::Tmux, Multiplexer::Screen]);
        assert_eq!(wrapped, b"\x1bPtmux;\x1b\x1bP\x1b\x1b]9;x\x07\x1b\x1b\\\x1b\\");
    }

    #[test]
    fn screen_pieces_stay_small_and_split_an_inner_st() {
        assert_eq!(wrap_for_screen(b"\x1b]9;x\x1b\\"), b"\x1bP\x1b]9;x\x1b\x1b\\\x1bP\\\x1b\\");
        let long = format!("\x1b]9;{}\x07", "é".repeat(2_000));
        let wrapped = wrap_for_screen(long.as_bytes());
        let pieces: Vec<&str> = std::str::from_utf8(&wrapped).unwrap().split_inclusive("\x1b\\").collect();
        assert!(pieces.len() > 5);
        let mut joined = String::new();
        for piece in pieces {
            assert!(piece.len() <= SCREEN_PIECE);
            joined += piece.strip_prefix("\x1bP").unwrap().strip_suffix("\x1b\\").unwrap();
        }
        assert_eq!(joined, long);
    }

    #[test]
    fn no_character_for_screen_becomes_a_control() {
        let screen = [Multiplexer::Screen];
        assert_eq!(
            wrap("\x1b]9;ě ć é 語\x07".as_bytes(), &screen),
            "\x1bP\x1b]9;? ? é ?\x07\x1b\\".as_bytes()
        );
        assert_eq!(wrap(b"\x9b\xff", &screen), b"\x1bP??\x1b\\");
    }
}
