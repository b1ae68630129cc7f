//! The frame of an outgoing OSC sequence, and the plain encoders: OSC 9, OSC 777, OSC 0 and OSC 8. OSC 99 is in `osc99.rs`.
//!
//! Each sanitises its text itself, so that no caller can forget it.

use crate::base64;
use crate::multiplexer::Multiplexer;
use crate::sanitise::{cut_bytes, sanitise_line};

/// The bell.
pub const BEL: &str = "\x07";

/// OSC 9, iTerm2's notification: one line, `title: body`.
///
/// ```
/// use ringer_term::{osc9, Terminator};
///
/// assert_eq!(osc9(Some("Claude Code"), "done", Terminator::St), "\x1b]9;Claude Code: done\x1b\\");
/// ```
pub fn osc9(title: Option<&str>, body: &str, terminator: Terminator) -> String {
    osc(&format!("9;{}", osc9_text(title, body)), terminator)
}

/// The text of an OSC 9. ConEmu's commands are `9;N;…`, and each of iTerm2, WezTerm, Ghostty and foot misreads either a
/// leading digit or a semicolon, so the text contains neither.
pub(crate) fn osc9_text(title: Option<&str>, body: &str) -> String {
    let text = match title.filter(|title| !title.is_empty()) {
        Some(title) if !body.is_empty() => format!("{title}: {body}"),
        Some(title) => title.to_owned(),
        None => body.to_owned(),
    };
    let text = sanitise_line(&text).replace(';', ",");
    if text.starts_with(|first: char| first.is_ascii_digit()) { format!(" {text}") } else { text }
}

/// OSC 52: asks the terminal to put a text into the clipboard.
///
/// ```
/// use ringer_term::{copy_to_clipboard, Terminator};
///
/// assert_eq!(copy_to_clipboard("hi", Terminator::Bel), "\x1b]52;c;aGk=\x07");
/// ```
pub fn copy_to_clipboard(text: &str, terminator: Terminator) -> String {
    osc(&format!("52;c;{}", base64::encode(text.as_bytes())), terminator)
}

/// The longest title in an OSC 777, in bytes: with the longest body it stays within the 8 KiB that a sequence may have.
const MAX_TITLE: usize = 1024;

/// OSC 777, the notification of Ghostty, WezTerm and Warp. Neither part keeps a semicolon, and the body is never
/// empty: with nothing but a title, the title is the body.
pub fn osc777(title: Option<&str>, body: &str, terminator: Terminator) -> String {
    let field = |text: &str| sanitise_line(text).replace(';', ",");
    let (mut title, mut body) = (field(title.unwrap_or_default()), field(body));
    if body.is_empty() {
        body = std::mem::take(&mut title);
    }
    if body.is_empty() {
        body.push(' ');
    }
    osc(&format!("777;notify;{};{body}", cut_bytes(&title, MAX_TITLE)), terminator)
}

/// The state that the start of a title shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleState {
    /// `✳`: waiting for input.
    Idle,
    /// `⠂` and `⠐` in turn: the frame counts up.
    Busy {
        /// Any number; even and odd frames differ.
        frame: usize,
    },
}

/// OSC 0, the window title with the state in front.
pub fn title(state: TitleState, text: &str, terminator: Terminator) -> String {
    let sign = match state {
        TitleState::Idle => '✳',
        TitleState::Busy { frame } if frame.is_multiple_of(2) => '⠂',
        TitleState::Busy { .. } => '⠐',
    };
    osc(&format!("0;{sign} {}", sanitise_line(text)), terminator)
}

/// Puts a mark in front of a terminal's title while it has unread notifications. The terminal saves the title before that
/// (XTWINOPS 22), and [`TITLE_RESTORE`] restores it. Only for terminals for which [`crate::Detection::restores_titles`]
/// returns true.
pub fn title_mark(sign: char, text: &str, terminator: Terminator) -> String {
    format!("\x1b[22;2t{}", osc(&format!("2;{sign} {}", sanitise_line(text)), terminator))
}

/// OSC 2, the window title without a mark.
pub fn window_title(text: &str, terminator: Terminator) -> String {
    osc(&format!("2;{}", sanitise_line(text)), terminator)
}

/// Restores the title that [`title_mark`] saved.
pub const TITLE_RESTORE: &str = "\x1b[23;2t";

/// OSC 8, a text that links to a URI. Characters of the URI other than printable ASCII are percent-encoded, as the protocol
/// requires.
pub fn hyperlink(uri: &str, text: &str, terminator: Terminator) -> String {
    let safe: String = uri
        .bytes()
        .map(
            |byte| {
                if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect();
    format!("{}{}{}", osc(&format!("8;;{safe}"), terminator), sanitise_line(text), osc("8;;", terminator))
}

/// The terminator of an OSC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminator {
    /// `ESC \`, the standard.
    St,
    /// BEL, for GNU screen: an ST inside its wrapper would have to be split over two pieces.
    Bel,
}

impl Terminator {
    /// The terminator to use inside these multiplexers.
    pub fn inside(layers: &[Multiplexer]) -> Self {
        if layers.contains(&Multiplexer::Screen) { Self::Bel } else { Self::St }
    }
}

/// Frames a payload that has already been sanitised.
pub(crate) fn osc(payload: &str, terminator: Terminator) -> String {
    let end = match terminator {
        Terminator::St => "\x1b\\",
        Terminator::Bel => "\x07",
    };
    format!("\x1b]{payload}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osc9_is_one_line_without_digits_first_or_semicolons() {
        let check = |title, body, text| assert_eq!(osc9_text(title, body), text);
        check(None, "done", "done");
        check(Some(""), "done", "done");
        check(Some("Claude Code"), "needs\nyou", "Claude Code: needs you");
        check(None, "4;1;50", " 4,1,50");
        check(Some("42"), "", " 42");
        check(None, "\x1b7 left", " 7 left");
    }

    #[test]
    fn osc777_keeps_its_three_fields() {
        let check = |title, body, sequence| assert_eq!(osc777(title, body, Terminator::Bel), sequence);
        check(Some("Claude Code"), "done", "\x1b]777;notify;Claude Code;done\x07");
        check(Some("a;b"), "c;d", "\x1b]777;notify;a,b;c,d\x07");
        check(Some("only a title"), "", "\x1b]777;notify;;only a title\x07");
        check(None, "\x07", "\x1b]777;notify;; \x07");
    }

    #[test]
    fn titles_carry_their_state() {
        assert_eq!(title(TitleState::Idle, "task", Terminator::Bel), "\x1b]0;✳ task\x07");
        assert_eq!(title(TitleState::Busy { frame: 0 }, "task", Terminator::Bel), "\x1b]0;⠂ task\x07");
        assert_eq!(title(TitleState::Busy { frame: 1 }, "a\x1bb", Terminator::Bel), "\x1b]0;⠐ ab\x07");
    }

    #[test]
    fn links_are_percent_encoded() {
        assert_eq!(
            hyperlink("file:///a b\x07é", "see", Terminator::St),
            "\x1b]8;;file:///a%20b%07%C3%A9\x1b\\see\x1b]8;;\x1b\\"
        );
    }
}
