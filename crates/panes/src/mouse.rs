//! Encodes mouse events for the program in a pane.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::emulator::MouseMode;

/// The form in which a program expects mouse events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseReport {
    pub(crate) mode: MouseMode,
    /// SGR encoding (decimal numbers) instead of single bytes.
    pub(crate) is_sgr: bool,
    /// Application cursor keys, for the wheel as keys.
    pub(crate) application_cursor: bool,
}

/// The lines of one step of the wheel.
pub(crate) const WHEEL_LINES: i32 = 3;

impl MouseReport {
    /// Encodes an event at a cell of the pane. Returns `None` if the program does not expect it.
    pub(crate) fn bytes(self, event: MouseEvent, x: u16, y: u16) -> Option<Vec<u8>> {
        if self.mode == MouseMode::WheelAsKeys {
            let key = match (event.kind, self.application_cursor) {
                (MouseEventKind::ScrollUp, true) => "\x1bOA",
                (MouseEventKind::ScrollUp, false) => "\x1b[A",
                (MouseEventKind::ScrollDown, true) => "\x1bOB",
                (MouseEventKind::ScrollDown, false) => "\x1b[B",
                _ => return None,
            };
            return Some(key.repeat(usize::try_from(WHEEL_LINES).unwrap_or(1)).into_bytes());
        }
        let button = |button| match button {
            MouseButton::Left => 0,
            MouseButton::Middle => 1,
            MouseButton::Right => 2,
        };
        let (code, needed, is_release) = match event.kind {
            MouseEventKind::Down(pressed) => (button(pressed), MouseMode::Clicks, false),
            MouseEventKind::Up(pressed) => (button(pressed), MouseMode::Clicks, true),
            MouseEventKind::Drag(held) => (button(held) + 32, MouseMode::Drags, false),
            MouseEventKind::Moved => (35, MouseMode::Motion, false),
            MouseEventKind::ScrollUp => (64, MouseMode::Clicks, false),
            MouseEventKind::ScrollDown => (65, MouseMode::Clicks, false),
            MouseEventKind::ScrollLeft => (66, MouseMode::Clicks, false),
            MouseEventKind::ScrollRight => (67, MouseMode::Clicks, false),
        };
        if self.mode < needed {
            return None;
        }
        let modifiers = [(KeyModifiers::SHIFT, 4), (KeyModifiers::ALT, 8), (KeyModifiers::CONTROL, 16)];
        let held = modifiers.iter().filter(|(modifier, _)| event.modifiers.contains(*modifier));
        let code: u8 = code + held.map(|(_, bit)| bit).sum::<u8>();
        if self.is_sgr {
            let last = if is_release { 'm' } else { 'M' };
            return Some(format!("\x1b[<{code};{};{}{last}", x + 1, y + 1).into_bytes());
        }
        // The X10 encoding does not say which button was released, and reaches no cell beyond 223.
        let code = if is_release { code | 3 } else { code };
        let cell = |number: u16| u8::try_from(number + 33).ok();
        Some(vec![0x1b, b'[', b'M', code + 32, cell(x)?, cell(y)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(mode: MouseMode, is_sgr: bool) -> MouseReport {
        MouseReport { mode, is_sgr, application_cursor: false }
    }

    fn event(kind: MouseEventKind) -> MouseEvent {
        MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE }
    }

    #[test]
    fn a_program_is_told_what_it_wants_to_know() {
        let down = event(MouseEventKind::Down(MouseButton::Left));
        let up = event(MouseEventKind::Up(MouseButton::Left));
        let drag = event(MouseEventKind::Drag(MouseButton::Left));
        let wheel = event(MouseEventKind::ScrollDown);
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text(report(MouseMode::Clicks, true).bytes(down, 4, 2)).unwrap(), "\x1b[<0;5;3M");
        assert_eq!(text(report(MouseMode::Clicks, true).bytes(up, 4, 2)).unwrap(), "\x1b[<0;5;3m");
        assert_eq!(text(report(MouseMode::Clicks, false).bytes(up, 4, 2)).unwrap(), "\x1b[M#%#");
        assert_eq!(report(MouseMode::Clicks, true).bytes(drag, 4, 2), None);
        assert_eq!(text(report(MouseMode::Drags, true).bytes(drag, 4, 2)).unwrap(), "\x1b[<32;5;3M");
        assert_eq!(report(MouseMode::Off, true).bytes(wheel, 0, 0), None);
        assert_eq!(
            text(report(MouseMode::WheelAsKeys, false).bytes(wheel, 0, 0)).unwrap(),
            "\x1b[B\x1b[B\x1b[B"
        );
        assert_eq!(report(MouseMode::Clicks, false).bytes(down, 300, 2), None, "it cannot be told");
    }
}
