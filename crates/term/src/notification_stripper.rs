//! Takes the notifications of a program out of its output, for a program between it and the terminal that shows them itself.

use crate::event::TerminalEvent;
use crate::passthrough_parser::MAX_OSC;
use crate::scanner::Scanner;

const ESC: u8 = 0x1b;

/// What is held back of a wrapper before it passes: a few notifications in one. A single OSC has a limit of its own.
const MAX_HELD: usize = 4 * MAX_OSC;

/// A [`Scanner`] that also passes the bytes on: all of them, in their order, without the notifications (OSC 9 texts, OSC 99,
/// OSC 777 `notify`), wherever the stream is cut.
///
/// A notification is missing as a whole or passes as a whole. One in a wrapper for tmux or screen is missing with its wrapper,
/// if nothing else is in that. Bells, titles, progress, queries and everything else pass. A byte is held back only as long as
/// it may be a part of a notification, and no more than a few thousand are.
///
/// ```
/// use ringer_term::NotificationStripper;
///
/// let (mut filter, mut terminal) = (NotificationStripper::new(), Vec::new());
/// for read in [&b"compiling\x1b]9;Bui"[..], b"ld done\x07$ "] {
///     filter.feed(read, true, |bytes| terminal.extend_from_slice(bytes), |event| println!("{event:?}"));
/// }
/// assert_eq!(terminal, b"compiling$ ");
/// ```
#[derive(Debug, Default)]
pub struct NotificationStripper {
    scanner: Scanner,
    held: Vec<u8>,
    holding: Holding,
}

/// What is held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Holding {
    /// Nothing: the sequence that is being read passes as it comes.
    #[default]
    Nothing,
    /// All of the sequence that is being read.
    Sequence,
    /// The last ESC of a sequence that passes: it ends it, or begins another one.
    LastEscape,
}

impl NotificationStripper {
    /// A filter at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes. `pass` gets what goes on to the terminal, in pieces. With `withhold`, notifications do not.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        withhold: bool,
        mut pass: impl FnMut(&[u8]),
        mut on_event: impl FnMut(TerminalEvent),
    ) {
        // Before this place, all bytes have been passed, dropped, or are held.
        let (mut at, mut done) = (0, 0);
        while at < bytes.len() {
            let next = self.scanner.step(bytes, at, &mut on_event);
            let parser = self.scanner.parser();
            if parser.is_ground() && self.holding == Holding::Nothing {
                at = next;
                continue;
            }
            if self.holding != Holding::Nothing {
                self.held.extend_from_slice(&bytes[at..next]);
                done = next;
            }
            let is_other = match self.holding {
                Holding::Nothing | Holding::LastEscape => true,
                Holding::Sequence => !parser.could_be_notification() || self.held.len() > MAX_HELD,
            };
            let begins = parser.is_after_escape() && last_byte(&self.held, &bytes[done..next]) == Some(ESC);
            if parser.is_ground() {
                let is_out = withhold && self.holding == Holding::Sequence && parser.was_notification();
                self.end_holding(is_out, &mut pass);
            } else if begins || is_other && self.holding != Holding::LastEscape && parser.may_end() {
                // What came before this ESC passes.
                let holding = if begins { Holding::Sequence } else { Holding::LastEscape };
                if withhold {
                    let escape = usize::from(done < next);
                    self.held.truncate(self.held.len().saturating_sub(1 - escape));
                    self.end_holding(false, &mut pass);
                    pass_some(&bytes[done..next - escape], &mut pass);
                    self.held.push(ESC);
                    self.holding = holding;
                    done = next;
                } else {
                    self.end_holding(false, &mut pass);
                }
            } else if is_other || parser.is_after_escape() {
                self.end_holding(false, &mut pass);
            }
            at = next;
        }
        pass_some(&bytes[done..], &mut pass);
        self.scanner.advance(bytes.len());
    }

    fn end_holding(&mut self, is_out: bool, pass: &mut impl FnMut(&[u8])) {
        if !is_out {
            pass_some(&self.held, pass);
        }
        self.held.clear();
        self.holding = Holding::Nothing;
    }

    /// Whether nothing but an ESC is held back. It may be all that comes for now: after a few milliseconds, [`release`] it.
    ///
    /// [`release`]: Self::release
    pub fn holds_escape(&self) -> bool {
        self.held.len() == 1
    }

    /// Passes what is held back: the stream has ended, or an ESC stays alone. The rest of its sequence will pass, too.
    pub fn release(&mut self, mut pass: impl FnMut(&[u8])) {
        self.end_holding(false, &mut pass);
    }

    /// Whether no sequence but a CSI is open at the end of what was read.
    pub fn is_between_sequences(&self) -> bool {
        self.scanner.parser().is_ground()
    }
}

fn pass_some(bytes: &[u8], pass: &mut impl FnMut(&[u8])) {
    if !bytes.is_empty() {
        pass(bytes);
    }
}

/// The last byte that was read: of those that are not done yet, or else of those that are held.
fn last_byte(held: &[u8], rest: &[u8]) -> Option<u8> {
    rest.last().or(held.last()).copied()
}
