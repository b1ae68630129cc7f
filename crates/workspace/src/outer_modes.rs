//! The modes of a client's terminal: those of the pane that has its keys.

use std::fmt::Write;

use crate::emulator::{InputModes, MouseMode};

/// What a client's terminal is set to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OuterModes {
    application_cursor: bool,
    application_keypad: bool,
    kitty_flags: u8,
    has_motion: bool,
}

impl OuterModes {
    /// Those with which the keys of the terminal are those that a program wants; and the mouse, if it is not the terminal's own.
    pub(crate) fn of(modes: InputModes, mouse: Option<MouseMode>) -> Self {
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            kitty_flags: modes.kitty_flags,
            has_motion: mouse == Some(MouseMode::Motion),
        }
    }

    /// What makes them out of others.
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
            // Turning it off turns the mouse off as a whole.
            if !self.has_motion {
                out.push_str("\x1b[?1002h");
            }
        }
    }
}

/// Takes a terminal over: its own screen, whole pastes, the mouse, focus, and a place for the flags of its keyboard.
pub(crate) fn enter(mouse: bool) -> String {
    let mouse = if mouse { "\x1b[?1002h\x1b[?1006h" } else { "" };
    format!("\x1b[?1049h\x1b[?2004h\x1b[?1004h{mouse}\x1b[>0u\x1b[?25l")
}

/// Asks it for the flags of its keyboard, and for what every terminal answers: then the first question was not understood.
pub(crate) const ASK_KEYBOARD: &str = "\x1b[?u\x1b[c";

/// Gives it back.
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
