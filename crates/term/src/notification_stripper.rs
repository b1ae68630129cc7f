//! Removes notifications from a program's output, for a program between it and the terminal that shows them itself.

use crate::event::TerminalEvent;
use crate::passthrough_parser::MAX_OSC;
use crate::scanner::Scanner;

const ESC: u8 = 0x1b;

/// The most bytes of a wrapper that are held back before it passes: a few notifications in one. A single OSC has its own
/// limit.
const MAX_HELD: usize = 4 * MAX_OSC;

/// A [`Scanner`] that also passes on the bytes: all of them, in order, without the notifications (OSC 9 texts, OSC 99, OSC 777
/// `notify`), wherever the stream is cut.
///
/// A notification is removed or passed as a whole. A wrapper for tmux or screen is removed if it contains nothing but
/// notifications. Bells, titles, progress, queries and everything else pass. A byte is held back only while it may be part of
/// a notification. At most about 32 KiB of a wrapper are held back.
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
    holding: HeldSequence,
}

/// The bytes that are held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HeldSequence {
    /// Nothing: the current sequence passes as it arrives.
    #[default]
    Nothing,
    /// The whole current sequence.
    Sequence,
    /// The last ESC of a sequence that passes. It may end the sequence, or begin another one.
    LastEscape,
}

impl NotificationStripper {
    /// Creates a filter at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes. `pass` receives the bytes for the terminal, in pieces. With `withhold`, notifications are left
    /// out.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        withhold: bool,
        mut pass: impl FnMut(&[u8]),
        mut on_event: impl FnMut(TerminalEvent),
    ) {
        // All bytes before `done` have been passed or dropped, or are held.
        let (mut at, mut done) = (0, 0);
        while at < bytes.len() {
            let next = self.scanner.step(bytes, at, &mut on_event);
            let parser = self.scanner.parser();
            if parser.is_ground() && self.holding == HeldSequence::Nothing {
                at = next;
                continue;
            }
            if self.holding != HeldSequence::Nothing {
                self.held.extend_from_slice(&bytes[at..next]);
                done = next;
            }
            let is_other = match self.holding {
                HeldSequence::Nothing | HeldSequence::LastEscape => true,
                HeldSequence::Sequence => !parser.could_be_notification() || self.held.len() > MAX_HELD,
            };
            let begins = parser.is_after_escape() && last_byte(&self.held, &bytes[done..next]) == Some(ESC);
            if parser.is_ground() {
                let is_out = withhold && self.holding == HeldSequence::Sequence && parser.was_notification();
                self.release_held(is_out, &mut pass);
            } else if begins || is_other && self.holding != HeldSequence::LastEscape && parser.may_end() {
                // The bytes before this ESC pass.
                let holding = if begins { HeldSequence::Sequence } else { HeldSequence::LastEscape };
                if withhold {
                    let escape = usize::from(done < next);
                    self.held.truncate(self.held.len().saturating_sub(1 - escape));
                    self.release_held(false, &mut pass);
                    pass_some(&bytes[done..next - escape], &mut pass);
                    self.held.push(ESC);
                    self.holding = holding;
                    done = next;
                } else {
                    self.release_held(false, &mut pass);
                }
            } else if is_other || parser.is_after_escape() {
                self.release_held(false, &mut pass);
            }
            at = next;
        }
        pass_some(&bytes[done..], &mut pass);
        self.scanner.advance(bytes.len());
    }

    fn release_held(&mut self, is_out: bool, pass: &mut impl FnMut(&[u8])) {
        if !is_out {
            pass_some(&self.held, pass);
        }
        self.held.clear();
        self.holding = HeldSequence::Nothing;
    }

    /// Returns true if only an ESC is held back. If nothing follows it for a few milliseconds, [`release`] it.
    ///
    /// [`release`]: Self::release
    pub fn holds_escape(&self) -> bool {
        self.held.len() == 1
    }

    /// Passes the bytes that are held back, because the stream has ended or no more bytes follow an ESC. The rest of the
    /// sequence will pass, too.
    pub fn release(&mut self, mut pass: impl FnMut(&[u8])) {
        self.release_held(false, &mut pass);
    }

    /// Returns true if no sequence other than a CSI is open at the end of the bytes read.
    pub fn is_between_sequences(&self) -> bool {
        self.scanner.parser().is_ground()
    }
}

fn pass_some(bytes: &[u8], pass: &mut impl FnMut(&[u8])) {
    if !bytes.is_empty() {
        pass(bytes);
    }
}

/// The last byte read: the last of `rest`, or else of the held bytes.
fn last_byte(held: &[u8], rest: &[u8]) -> Option<u8> {
    rest.last().or(held.last()).copied()
}
