//! Parses the bytes of the terminal into keys, clicks and pastes.

#[cfg(test)]
mod tests;

use std::mem;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longer sequences are discarded.
const MAX_SEQUENCE: usize = 4096;
/// Maximum length of a paste, in bytes. The rest of a longer paste is dropped.
pub const MAX_PASTE: usize = 16 * 1024 * 1024;

/// One event of the input, with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The event; `None` for anything that the person did not do, such as a reply of the terminal.
    pub event: Option<Event>,
    /// The bytes of the event; for a paste, only the pasted text.
    pub bytes: Vec<u8>,
    /// True for a paste that was longer than [`MAX_PASTE`].
    pub is_cut: bool,
}

/// Turns bytes into events, wherever the input is split.
#[derive(Debug, Default)]
pub struct InputParser {
    /// An incomplete sequence or character.
    pending: Vec<u8>,
    /// The paste that has not ended yet.
    paste: Option<Paste>,
}

#[derive(Debug, Default)]
struct Paste {
    bytes: Vec<u8>,
    is_cut: bool,
    /// True if a part of the paste was taken before its end.
    is_rest: bool,
    /// True if nothing has come since then.
    is_late: bool,
}

/// The result of parsing the beginning of the bytes.
enum Step {
    /// The length in bytes, and the event if there is one.
    Found(usize, Option<Event>),
    /// The beginning of a paste, and its length in bytes.
    Paste(usize),
    /// More bytes are needed.
    Incomplete,
}

impl InputParser {
    /// Returns true if the parser waits for the rest of a sequence. If none comes soon, call [`Self::flush`]. The rest of a paste
    /// or of a character has no timeout: an incomplete one was not typed.
    pub fn is_waiting(&self) -> bool {
        let is_sequence = match self.pending[..] {
            [ESCAPE, next, ..] => next.is_ascii(),
            [ESCAPE] => true,
            _ => false,
        };
        is_sequence && self.paste.is_none()
    }

    /// Returns true if the parser waits for the rest of a paste. If none comes for some seconds, call
    /// [`Self::take_unfinished_paste`].
    pub fn is_pasting(&self) -> bool {
        self.paste.as_ref().is_some_and(|paste| !paste.is_late)
    }

    /// Parses bytes as they were read. After an unfinished paste, a single key with Ctrl was typed; everything else is the rest
    /// of the paste, which must not be mistaken for commands.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        if self.paste.as_ref().is_some_and(|paste| paste.is_late) && is_control_key(bytes) {
            (self.paste, self.pending) = (None, Vec::new());
        }
        self.paste.iter_mut().for_each(|paste| paste.is_late = false);
        self.pending.extend_from_slice(bytes);
        self.parse(false)
    }

    /// Returns what has arrived of a paste whose end is missing.
    pub fn take_unfinished_paste(&mut self) -> Option<Input> {
        let paste = self.paste.as_mut()?;
        // The last bytes may be the beginning of the end marker.
        let is_beginning = |at: &usize| PASTE_END.starts_with(&self.pending[*at..]);
        let kept = (0..=self.pending.len()).find(is_beginning).unwrap_or(self.pending.len());
        paste.append(&self.pending[..kept]);
        self.pending.drain(..kept);
        let taken = mem::take(paste);
        (paste.is_rest, paste.is_late) = (true, true);
        Paste { is_rest: true, ..taken }.input()
    }

    /// Parses the pending bytes after a timeout: an escape byte is the key Escape, or Alt with the next key. An incomplete
    /// character stays pending.
    pub fn flush(&mut self) -> Vec<Input> {
        self.parse(true)
    }

    fn parse(&mut self, is_all: bool) -> Vec<Input> {
        let mut inputs = Vec::new();
        let bytes = mem::take(&mut self.pending);
        let mut rest = bytes.as_slice();
        loop {
            if let Some(pasted) = &mut self.paste {
                let Some(taken) = pasted.take(rest) else {
                    // The last bytes may be the beginning of the end marker.
                    let kept = rest.len().saturating_sub(PASTE_END.len() - 1);
                    pasted.append(&rest[..kept]);
                    rest = &rest[kept..];
                    break;
                };
                rest = &rest[taken..];
                inputs.extend(mem::take(pasted).input());
                self.paste = None;
            }
            if rest.is_empty() {
                break;
            }
            match step(rest, is_all) {
                Step::Found(length, event) => {
                    let (bytes, after) = rest.split_at(length);
                    inputs.push(Input { event, bytes: bytes.to_vec(), is_cut: false });
                    rest = after;
                }
                Step::Paste(length) => {
                    rest = &rest[length..];
                    self.paste = Some(Paste::default());
                }
                Step::Incomplete if rest.len() > MAX_SEQUENCE => rest = &[],
                Step::Incomplete => break,
            }
        }
        self.pending = rest.to_vec();
        inputs
    }
}

impl Paste {
    /// Returns the pasted text as an event. A whole paste may be empty: for some programs that means a picture.
    fn input(self) -> Option<Input> {
        let Self { bytes, is_cut, is_rest, .. } = self;
        let event = Some(Event::Paste(String::from_utf8_lossy(&bytes).into_owned()));
        (!bytes.is_empty() || !is_rest).then_some(Input { event, bytes, is_cut })
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = MAX_PASTE.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.is_cut |= room < bytes.len();
    }

    /// Takes the rest of a paste. Returns the number of bytes up to and including the end marker, or `None` if there is none.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END)?;
        self.append(&bytes[..end]);
        Some(end + PASTE_END.len())
    }
}

/// Returns true if the bytes are one key with Ctrl, and not a line feed. Terminals remove such characters from pastes.
fn is_control_key(bytes: &[u8]) -> bool {
    let is_whole = |length| length == bytes.len() && bytes != b"\n";
    matches!(step(bytes, false), Step::Found(length, Some(Event::Key(key)))
        if is_whole(length) && key.modifiers.contains(KeyModifiers::CONTROL))
}

fn step(bytes: &[u8], is_all: bool) -> Step {
    match bytes {
        [ESCAPE, b'[', rest @ ..] => match parse_csi(rest) {
            CsiSequence::Event(length, event) => Step::Found(length + 2, event),
            CsiSequence::PasteStart(length) => Step::Paste(length + 2),
            CsiSequence::Incomplete => incomplete(bytes, is_all),
        },
        [ESCAPE, b'O', key, ..] => match letter_key(*key) {
            Some(code) => Step::Found(3, Some(Event::Key(code.into()))),
            None => Step::Found(3, None),
        },
        // A reply of the terminal to a query, ended by `ESC \` or a bell.
        [ESCAPE, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => match string_length(rest) {
            Some(length) => Step::Found(length + 2, None),
            None => incomplete(bytes, is_all),
        },
        // The first byte is the key Escape: the second may begin another sequence.
        [ESCAPE, ESCAPE, ..] => Step::Found(1, Some(Event::Key(KeyCode::Esc.into()))),
        [ESCAPE] | [ESCAPE, b'O'] => incomplete(bytes, is_all),
        [ESCAPE, rest @ ..] => match character(rest) {
            Some((length, key)) => Step::Found(length + 1, key.map(|key| Event::Key(with_alt(key)))),
            None => Step::Incomplete,
        },
        _ => match character(bytes) {
            Some((length, key)) => Step::Found(length, key.map(Event::Key)),
            None => Step::Incomplete,
        },
    }
}

/// Handles an incomplete sequence: if nothing more comes, its first byte is the key Escape, or its first two bytes are a key with
/// Alt.
fn incomplete(bytes: &[u8], is_all: bool) -> Step {
    match bytes {
        _ if !is_all => Step::Incomplete,
        [_, second, ..] if second.is_ascii_graphic() => {
            let key = KeyEvent::new(KeyCode::Char(char::from(*second)), KeyModifiers::ALT);
            Step::Found(2, Some(Event::Key(key)))
        }
        _ => Step::Found(1, Some(Event::Key(KeyCode::Esc.into()))),
    }
}

fn with_alt(key: KeyEvent) -> KeyEvent {
    KeyEvent { modifiers: key.modifiers | KeyModifiers::ALT, ..key }
}

/// Returns the length of a string including its terminator.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| matches!(*byte, BELL | ESCAPE))?;
    match bytes[end..] {
        [BELL, ..] => Some(end + 1),
        [_, b'\\', ..] => Some(end + 2),
        // Another sequence has begun: the string has no terminator.
        [_, _, ..] => Some(end),
        _ => None,
    }
}

/// Parses the first character as a key, and returns its length. `None` if more bytes are needed. An invalid byte yields no key.
fn character(bytes: &[u8]) -> Option<(usize, Option<KeyEvent>)> {
    let first = *bytes.first()?;
    if first < 0x20 || first == 0x7f {
        return Some((1, Some(control(first))));
    }
    let length = match first {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((1, None)),
    };
    let text = &bytes[..length.min(bytes.len())];
    match str::from_utf8(text) {
        Ok(text) => Some((length, text.chars().next().map(|char| char_key(char, KeyModifiers::NONE)))),
        Err(error) if error.error_len().is_none() => None,
        Err(_) => Some((1, None)),
    }
}

/// Returns the key of a character. An upper-case character was typed with Shift.
fn char_key(char: char, modifiers: KeyModifiers) -> KeyEvent {
    let shift = if char.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    KeyEvent::new(KeyCode::Char(char), modifiers | shift)
}

fn control(byte: u8) -> KeyEvent {
    let with_control = |char: u8| KeyEvent::new(KeyCode::Char(char::from(char)), KeyModifiers::CONTROL);
    match byte {
        b'\r' => KeyCode::Enter.into(),
        b'\t' => KeyCode::Tab.into(),
        0x7f => KeyCode::Backspace.into(),
        0 => with_control(b' '),
        0x01..=0x1a => with_control(byte - 1 + b'a'),
        _ => with_control(byte - 0x1c + b'4'),
    }
}

/// The result of parsing the bytes after `ESC [`.
#[derive(Debug, PartialEq, Eq)]
enum CsiSequence {
    /// The length in bytes, and the event if there is one.
    Event(usize, Option<Event>),
    PasteStart(usize),
    Incomplete,
}

fn parse_csi(bytes: &[u8]) -> CsiSequence {
    match bytes {
        // The Linux console sends its own sequences for F1 to F5.
        [b'[', key, ..] => {
            let number = key.checked_sub(b'A').filter(|number| *number < 5);
            return CsiSequence::Event(2, number.map(|number| Event::Key(KeyCode::F(number + 1).into())));
        }
        // The X10 mouse encoding: three bytes, each with 32 added.
        [b'M', button, column, row, ..] => {
            let numbers = [*button, *column, *row].map(|byte| u16::from(byte.saturating_sub(32)));
            return CsiSequence::Event(4, mouse(numbers, false).map(Event::Mouse));
        }
        [b'['] | [b'M', ..] => return CsiSequence::Incomplete,
        _ => {}
    }
    let is_parameter = |byte: &u8| (0x20..=0x3f).contains(byte);
    let Some(end) = bytes.iter().position(|byte| !is_parameter(byte)) else { return CsiSequence::Incomplete };
    let (parameters, last) = (&bytes[..end], bytes[end]);
    if !(0x40..=0x7e).contains(&last) {
        // Not a sequence: the bytes from here on are parsed separately.
        return CsiSequence::Event(end, None);
    }
    if (parameters, last) == (b"200", b'~') {
        return CsiSequence::PasteStart(end + 1);
    }
    let parameters = str::from_utf8(parameters).unwrap_or_default();
    CsiSequence::Event(end + 1, event(parameters, last))
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
fn letter_key(letter: u8) -> Option<KeyCode> {
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
