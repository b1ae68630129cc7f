//! The scanner: a stream of bytes in, what the program tells its terminal out.

use crate::assembly::Assembly;
use crate::event::{Event, EventKind, Notification};
use crate::id::NotificationId;
use crate::interpret::{Meaning, interpret};
use crate::layer::{Layer, Token};

/// Watches what a program writes to its terminal.
///
/// Feed it the bytes as they come; they are only looked at and still belong to the emulator. However the stream is cut
/// into pieces, the events are the same. Memory is bounded whatever the program sends: one sequence of at most 8 KiB
/// per wrapper, up to 16 unfinished OSC 99 notifications of at most 16 KiB, and the last 16 finished ones.
///
/// ```
/// use ringer_term::{EventKind, Scanner};
///
/// let mut scanner = Scanner::new();
/// let mut titles = Vec::new();
/// for piece in [&b"\x1b]0;\xe2\x9c\xb3 Cla"[..], b"ude Code\x07$ "] {
///     scanner.feed(piece, |event| {
///         if let EventKind::Title(title) = event.kind {
///             titles.push(title);
///         }
///     });
/// }
/// assert_eq!(titles, ["✳ Claude Code"]);
/// ```
#[derive(Debug)]
pub struct Scanner {
    layer: Layer,
    assembly: Assembly,
    position: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner at the beginning of a stream.
    pub fn new() -> Self {
        Self { layer: Layer::new(), assembly: Assembly::default(), position: 0 }
    }

    /// Reads the next bytes of the stream and calls back for every event that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(Event)) {
        let Self { layer, assembly, position } = self;
        layer.feed(bytes, *position, &mut |offset, token| {
            let event = match token {
                Token::Bell => Some((offset, EventKind::Bell)),
                Token::Osc(payload) => match interpret(payload) {
                    Meaning::Event(kind) => Some((offset, kind)),
                    Meaning::Chunk99(chunk) => assembly.take(chunk, offset),
                    Meaning::Nothing => None,
                },
            };
            if let Some((offset, kind)) = event {
                on_event(Event { offset, kind });
            }
        });
        *position += bytes.len() as u64;
    }

    /// How many bytes have been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The last OSC 99 notification of an id, with the keys that came after it was reported. Claude Code says what a
    /// click does only then, so whoever holds a notification back for a moment should look here before using it.
    pub fn notification(&self, id: &NotificationId) -> Option<&Notification> {
        self.assembly.finished(id)
    }
}
