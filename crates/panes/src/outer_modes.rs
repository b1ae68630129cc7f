//! Modes of a client's terminal, which follow the focused pane.

use std::fmt::Write;

use crate::emulator::{InputModes, MouseMode};

/// The modes that a client's terminal is set to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OuterModes {
    application_cursor: bool,
    application_keypad: bool,
    kitty_flags: u8,
    has_motion: bool,
}

impl OuterModes {
    /// The modes with which the terminal sends the keys that the focused program expects. `mouse` is `None` if the terminal
    /// handles the mouse itself.
    pub(crate) fn of(modes: InputModes, mouse: Option<MouseMode>) -> Self {
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            kitty_flags: modes.kitty_flags,
            has_motion: mouse == Some(MouseMode::Motion),
        }
    }

    /// Appends the sequences that change the modes from `before` to `self`.
    pub(crate) fn write_changes(self, before: Self, out: &mut String) {
        let switch = |is_on: bool| if is_on { 'h' } else { 'l' };
        if self.application_cursor != before.application_cursor {
            let _ = write!(out, "\x1b[?1{}", switch(self.application_cursor));
        }
        if self.application_keypad != before.application_keypad {
            out.push_str(if self.application_keypad { "\x1b=" } else { "\x1b>" });
        }
        if self.kitty_flags != before.kitty_flags {
            let _ = write!(out, "\x1b[={};1u", self.kitty_flags);
        }
        if self.has_motion != before.has_motion {
            let _ = write!(out, "\x1b[?1003{}", switch(self.has_motion));
            // Resetting 1003 turns off mouse reporting as a whole.
            if !self.has_motion {
                out.push_str("\x1b[?1002h");
            }
        }
    }
}

/// Takes over a terminal: alternate screen, bracketed paste, mouse, focus events, and an entry on the stack of kitty's keyboard
/// flags.
pub(crate) fn enter(mouse: bool) -> String {
    let mouse = if mouse { "\x1b[?1002h\x1b[?1006h" } else { "" };
    format!("\x1b[?1049h\x1b[?2004h\x1b[?1004h{mouse}\x1b[>0u\x1b[?25l")
}

/// Queries kitty's keyboard flags, and then the device attributes, which every terminal answers: if only the second answer
/// arrives, the terminal has no such flags.
pub(crate) const ASK_KEYBOARD: &str = "\x1b[?u\x1b[c";

/// Undoes [`enter`] and all modes.
pub(crate) const LEAVE: &str = "\x1b[<u\x1b[?1003l\x1b[?1002l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\x1b[0 q\x1b[?25h\x1b[?1049l";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_set() {
        let modes = InputModes { application_cursor: true, kitty_flags: 5, ..InputModes::default() };
        let modes = OuterModes::of(modes, Some(MouseMode::Motion));
        let mut out = String::new();
        modes.write_changes(OuterModes::default(), &mut out);
        assert_eq!(out, "\x1b[?1h\x1b[=5;1u\x1b[?1003h");
        out.clear();
        modes.write_changes(modes, &mut out);
        assert_eq!(out, "");
        OuterModes::default().write_changes(modes, &mut out);
        assert_eq!(out, "\x1b[?1l\x1b[=0;1u\x1b[?1003l\x1b[?1002h");
    }
}
