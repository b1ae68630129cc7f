//! Control sequences of the terminal (`ESC [`): special keys, the mouse, focus, and the beginning of a paste.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// The result of parsing the bytes after `ESC [`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The length in bytes, and the event if there is one.
    Event(usize, Option<Event>),
    PasteStart(usize),
    Incomplete,
}

pub(super) fn parse(bytes: &[u8]) -> Parsed {
    match bytes {
        // The Linux console sends its own sequences for F1 to F5.
        [b'[', key, ..] => {
            let number = key.checked_sub(b'A').filter(|number| *number < 5);
            return Parsed::Event(2, number.map(|number| Event::Key(KeyCode::F(number + 1).into())));
        }
        // The X10 mouse encoding: three bytes, each with 32 added.
        [b'M', button, column, row, ..] => {
            let numbers = [*button, *column, *row].map(|byte| u16::from(byte.saturating_sub(32)));
            return Parsed::Event(4, mouse(numbers, false).map(Event::Mouse));
        }
        [b'['] | [b'M', ..] => return Parsed::Incomplete,
        _ => {}
    }
    let is_parameter = |byte: &u8| (0x20..=0x3f).contains(byte);
    let Some(end) = bytes.iter().position(|byte| !is_parameter(byte)) else { return Parsed::Incomplete };
    let (parameters, last) = (&bytes[..end], bytes[end]);
    if !(0x40..=0x7e).contains(&last) {
        // Not a sequence: the bytes from here on are parsed separately.
        return Parsed::Event(end, None);
    }
    if (parameters, last) == (b"200", b'~') {
        return Parsed::PasteStart(end + 1);
    }
    let parameters = str::from_utf8(parameters).unwrap_or_default();
    Parsed::Event(end + 1, event(parameters, last))
}

fn event(parameters: &str, last: u8) -> Option<Event> {
    match (parameters.strip_prefix('<'), last) {
        (Some(numbers), b'M' | b'm') => {
            return mouse(three(numbers)?, last == b'm').map(Event::Mouse);
        }
        (None, b'M') => {
            let [button, column, row] = three(parameters)?;
            return mouse([button.checked_sub(32)?, column, row], false).map(Event::Mouse);
        }
        (None, b'I') if parameters.is_empty() => return Some(Event::FocusGained),
        (None, b'O') if parameters.is_empty() => return Some(Event::FocusLost),
        _ => {}
    }
    let mut parts = parameters.split(';');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut second = second.split(':');
    let modifiers = modifiers(second.next().unwrap_or_default());
    let kind = match second.next() {
        Some("2") => KeyEventKind::Repeat,
        Some("3") => KeyEventKind::Release,
        _ => KeyEventKind::Press,
    };
    let code = match last {
        b'~' => tilde_key(first.parse().ok()?)?,
        b'u' => unicode_key(first.split(':').next()?.parse().ok()?)?,
        b'Z' => KeyCode::BackTab,
        // `ESC [ 4 ; 7 R` is a cursor position report.
        b'R' if !matches!(first, "" | "1") => return None,
        last => letter_key(last).filter(|_| matches!(first, "" | "1"))?,
    };
    let shift = if code == KeyCode::BackTab { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    Some(Event::Key(KeyEvent::new_with_kind(code, modifiers | shift, kind)))
}

/// Returns the key of a final letter, as in `ESC [ A` and `ESC O A`.
pub(super) fn letter_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

fn tilde_key(number: u8) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number - 10),
        17..=21 => KeyCode::F(number - 11),
        23..=26 => KeyCode::F(number - 12),
        28 | 29 => KeyCode::F(number - 13),
        31..=34 => KeyCode::F(number - 14),
        _ => return None,
    })
}

/// Returns the key of a code point, as in the kitty keyboard protocol (`ESC [ 97 u`).
fn unicode_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        // Keypad, modifier and media keys, in the Unicode private use area.
        57344..=63743 => return None,
        number => KeyCode::Char(char::from_u32(number).filter(|char| !char.is_control())?),
    })
}

/// Parses the modifier parameter: 1 plus the sum of 1 for Shift, 2 for Alt, 4 for Ctrl and 8 for Super.
fn modifiers(text: &str) -> KeyModifiers {
    let bits = text.parse::<u8>().unwrap_or(1).saturating_sub(1);
    let known = [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
    ];
    known.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, modifier)| modifier).collect()
}

fn three(text: &str) -> Option<[u16; 3]> {
    let mut numbers = text.split(';').map(str::parse);
    let three = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
    numbers.next().is_none().then_some(three)
}

/// Parses a mouse report: button with modifiers, column, row. Column and row count from 1.
fn mouse([button, column, row]: [u16; 3], is_release: bool) -> Option<MouseEvent> {
    let which = match button & 0b1100_0011 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (button & 0b1100_0011, which, button & 32 != 0) {
        (64, _, _) => MouseEventKind::ScrollUp,
        (65, _, _) => MouseEventKind::ScrollDown,
        (66, _, _) => MouseEventKind::ScrollLeft,
        (67, _, _) => MouseEventKind::ScrollRight,
        (_, Some(which), true) => MouseEventKind::Drag(which),
        (_, None, true) => MouseEventKind::Moved,
        (_, Some(which), false) if is_release => MouseEventKind::Up(which),
        (_, Some(which), false) => MouseEventKind::Down(which),
        // The X10 encoding does not tell which button was released.
        (3, None, false) => MouseEventKind::Up(MouseButton::Left),
        _ => return None,
    };
    let bits = [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)];
    let modifiers = bits.into_iter().filter(|(bit, _)| button & bit != 0).map(|(_, modifier)| modifier);
    Some(MouseEvent {
        kind,
        column: column.checked_sub(1)?,
        row: row.checked_sub(1)?,
        modifiers: modifiers.collect(),
    })
}
