//! The PTY master of a pane's program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ringer_platform::ByteQueue;
use rustix::io::Errno;
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use crate::emulator::Size;
use crate::layout::PaneId;

/// The most input that is queued for a program that does not read. More is lost, as in any terminal.
const MAX_WAITING: usize = 4 * 1024 * 1024;

/// The first and the longest pause before a PTY that no process has open is read again: the program may open it once more.
const CLOSED_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(32));

/// A program, and whether it is readable and writable.
pub(super) type ReadyProgram = (PaneId, bool, bool);

/// The state of a program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// There may be output.
    Open,
    /// No process has the PTY open. It is read again at `until`.
    Closed { until: Instant, pause: Duration },
    /// The program has ended, and all output was read.
    Over,
}

/// The PTY master of a program.
#[derive(Debug)]
pub(super) struct Program {
    master: OwnedFd,
    input: ByteQueue,
    output: Output,
    /// Output is not read before this time.
    paused_until: Option<Instant>,
    /// The connected keeper holds the program, and will report how it ends.
    is_kept: bool,
    pub(super) has_ended: bool,
    /// The screen has changed since it was saved.
    pub(super) is_unsaved: bool,
}

impl Program {
    pub(super) fn new(master: OwnedFd) -> Self {
        Self {
            master,
            input: ByteQueue::default(),
            output: Output::Open,
            paused_until: None,
            is_kept: true,
            has_ended: false,
            is_unsaved: true,
        }
    }

    /// Returns true if the PTY should be polled now.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        match self.output {
            // The last output is shown before the end is reported, so there is no pause.
            Output::Open => self.has_ended || self.paused_until.is_none_or(|until| until <= now),
            Output::Closed { until, .. } => until <= now,
            Output::Over => false,
        }
    }

    /// Stops reading for a while: the program writes more than can be shown, while the person types elsewhere.
    pub(super) fn pause(&mut self, pause: Duration, now: Instant) {
        self.paused_until = Some(now + pause);
    }

    /// The time of the next read, if reading is paused.
    pub(super) fn next_look(&self) -> Option<Instant> {
        match self.output {
            Output::Closed { until, .. } => Some(until),
            Output::Open => self.paused_until,
            Output::Over => None,
        }
    }

    /// Records that no keeper will report how the program ends.
    pub(super) fn lose_keeper(&mut self) {
        self.is_kept = false;
        if self.output != Output::Open {
            self.output = Output::Over;
        }
    }

    /// Records that the connected keeper holds the program.
    pub(super) fn find_keeper(&mut self) {
        (self.is_kept, self.output) = (true, Output::Open);
    }

    /// Returns true if the program is over, and no keeper will report how it ended.
    pub(super) fn is_lost(&self) -> bool {
        self.output == Output::Over && !self.is_kept
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    pub(super) fn has_output_waiting(&self) -> bool {
        !self.input.is_empty()
    }

    pub(super) fn size(&self) -> Option<Size> {
        let size = tcgetwinsize(&self.master).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
        Some(Size::at_least(size.ws_col, size.ws_row))
    }

    pub(super) fn resize(&self, size: Size) {
        let size = Winsize { ws_row: size.lines, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        // This fails if the terminal is gone.
        let _ = tcsetwinsize(&self.master, size);
    }

    /// Returns true if the queue takes more input.
    pub(super) fn has_room(&self) -> bool {
        self.input.len() < MAX_WAITING
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.has_room() {
            self.input.push(bytes);
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        // The program is gone.
        if self.input.write_to(&self.master).is_err() {
            self.input.clear();
        }
    }

    /// Reads available output into the buffer. Returns its length.
    pub(super) fn read(&mut self, buffer: &mut [u8], now: Instant) -> io::Result<usize> {
        self.paused_until = None;
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::read(&self.master, &mut buffer[filled..]) {
                Ok(0) | Err(Errno::IO) => {
                    self.close(now);
                    return Ok(filled);
                }
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.output = Output::Open;
        Ok(filled)
    }

    /// Handles a PTY that no process has open.
    fn close(&mut self, now: Instant) {
        let (shortest, longest) = CLOSED_WAIT;
        self.output = match self.output {
            _ if self.has_ended || !self.is_kept => Output::Over,
            Output::Closed { pause, .. } => {
                let pause = (pause * 2).min(longest);
                Output::Closed { until: now + pause, pause }
            }
            _ => Output::Closed { until: now + shortest, pause: shortest },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_program_is_read_when_the_pause_is_over() {
        let (master, terminal) = pty_process::blocking::open().unwrap();
        let (mut program, now) = (Program::new(OwnedFd::from(master)), Instant::now());
        let pause = Duration::from_millis(1);
        program.pause(pause, now);
        assert!(!program.is_open(now) && program.next_look() == Some(now + pause));
        assert!(program.is_open(now + pause));
        program.has_ended = true;
        assert!(program.is_open(now), "what it wrote last is read before");
        program.has_ended = false;
        rustix::io::write(&terminal, b"more").unwrap();
        assert_eq!(program.read(&mut [0; 4], now + pause).unwrap(), 4);
        assert!(program.is_open(now) && program.next_look().is_none());
    }

    #[test]
    fn a_terminal_that_is_closed_and_opened_again_is_read_again() {
        let (master, terminal) = pty_process::blocking::open().unwrap();
        let name = rustix::termios::ttyname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let master = OwnedFd::from(master);
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let (mut program, mut now, mut buffer) = (Program::new(master), Instant::now(), [0; 64]);
        drop(terminal);
        assert_eq!(program.read(&mut buffer, now).unwrap(), 0);
        assert!(!program.is_open(now));
        now = program.next_look().unwrap();
        assert!(program.is_open(now));
        let mut again = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
        assert_eq!(program.read(&mut buffer, now).unwrap(), 0, "nothing is there, but it is open");
        assert!(program.is_open(now) && program.next_look().is_none());
        io::Write::write_all(&mut again, b"again").unwrap();
        drop(again);
        assert_eq!(program.read(&mut buffer, now).unwrap(), 5);
        program.has_ended = true;
        assert_eq!(program.read(&mut buffer, now).unwrap(), 0);
        assert!(!program.is_open(now + CLOSED_WAIT.1 * 2));
    }
}
