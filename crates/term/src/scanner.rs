//! The scanner: takes the bytes of a stream and returns terminal events.

use crate::event::{Notification, TerminalEvent, TerminalEventKind};
use crate::interpret::{Meaning, interpret};
use crate::osc99::NotificationId;
use crate::osc99_assembler::Osc99Assembler;
use crate::passthrough_parser::{PassthroughParser, Token};

/// Finds events in the output of a program.
///
/// Feed it the bytes as they arrive; it only reads them, and they still belong to the emulator. However the stream is cut into
/// pieces, the events are the same. Memory is bounded whatever the program sends: one sequence of at most 8 KiB per wrapper,
/// up to 16 unfinished OSC 99 notifications of at most 16 KiB, and the last 16 finished ones.
///
/// ```
/// use ringer_term::{TerminalEventKind, Scanner};
///
/// let mut scanner = Scanner::new();
/// let mut titles = Vec::new();
/// for piece in [&b"\x1b]0;\xe2\x9c\xb3 Cla"[..], b"ude Code\x07$ "] {
///     scanner.feed(piece, |event| {
///         if let TerminalEventKind::Title(title) = event.kind {
///             titles.push(title);
///         }
///     });
/// }
/// assert_eq!(titles, ["✳ Claude Code"]);
/// ```
#[derive(Debug)]
pub struct Scanner {
    parser: PassthroughParser,
    assembler: Osc99Assembler,
    position: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Creates a scanner at the beginning of a stream.
    pub fn new() -> Self {
        Self { parser: PassthroughParser::new(), assembler: Osc99Assembler::default(), position: 0 }
    }

    /// Reads the next bytes of the stream and calls `on_event` for every event that they complete.
    pub fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(TerminalEvent)) {
        let Self { parser, assembler, position } = self;
        parser.feed(bytes, *position, &mut |offset, token| {
            if let Some(event) = read_token(assembler, offset, &token) {
                on_event(event);
            }
        });
        *position += bytes.len() as u64;
    }

    /// Reads from `at` to the next position at which a sequence may begin or end, and returns it.
    pub(crate) fn step(
        &mut self,
        bytes: &[u8],
        at: usize,
        on_event: &mut impl FnMut(TerminalEvent),
    ) -> usize {
        let Self { parser, assembler, position } = self;
        parser.step(bytes, at, *position, &mut |offset, token| {
            if let Some(event) = read_token(assembler, offset, &token) {
                on_event(event);
            }
        })
    }

    /// Advances the position after bytes were read with [`Self::step`].
    pub(crate) fn advance(&mut self, length: usize) {
        self.position += length as u64;
    }

    pub(crate) fn parser(&self) -> &PassthroughParser {
        &self.parser
    }

    /// The number of bytes read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the last OSC 99 notification with an id, including metadata that arrived after it was reported. Claude Code
    /// sends the click action only then, so a caller that delays a notification should read it again here before using it.
    pub fn notification(&self, id: &NotificationId) -> Option<&Notification> {
        self.assembler.finished(id)
    }
}

/// Converts a token to an event, if it completes one.
fn read_token(assembler: &mut Osc99Assembler, offset: u64, token: &Token<'_>) -> Option<TerminalEvent> {
    let (offset, kind) = match token {
        Token::Bell => (offset, TerminalEventKind::Bell),
        Token::Osc(payload) => match interpret(payload) {
            Meaning::Event(kind) => (offset, kind),
            Meaning::Chunk99(chunk) => assembler.add_chunk(chunk, offset)?,
            Meaning::Nothing => return None,
        },
    };
    Some(TerminalEvent { offset, kind })
}
