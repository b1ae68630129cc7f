//! The program of a pane, as the server talks to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringer_pty::ByteQueue;
use rustix::io::Errno;
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use crate::emulator::Size;
use crate::snapshot::Snapshots;

/// Read at once, so that one that floods does not keep the others waiting.
const MAX_READ: usize = 256 * 1024;
/// A PTY gives 4 KiB at most, mostly.
const PIECE: usize = 64 * 1024;
/// What may wait for a program that does not read. Beyond that, keys are lost, as in any terminal.
const MAX_WAITING: usize = 4 * 1024 * 1024;

/// The master of a program's terminal.
#[derive(Debug)]
pub(super) struct Program {
    master: OwnedFd,
    input: ByteQueue,
    /// No process has the terminal open any more.
    pub(super) is_over: bool,
    /// The keeper that is connected has it, and tells how it ends.
    pub(super) is_kept: bool,
    pub(super) snapshots: Snapshots,
    /// Whether it showed something since its screen was saved.
    pub(super) is_unsaved: bool,
}

impl Program {
    pub(super) fn new(master: OwnedFd) -> Self {
        let (input, snapshots) = (ByteQueue::default(), Snapshots::default());
        Self { master, input, is_over: false, is_kept: true, snapshots, is_unsaved: true }
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
        // A terminal that is gone has no size.
        let _ = tcsetwinsize(&self.master, size);
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.input.len() < MAX_WAITING {
            self.input.push(bytes);
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        // A program that has gone takes no more input.
        if self.input.write_to(&self.master).is_err() {
            self.input.clear();
        }
    }

    /// Reads what there is, up to a limit.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        while buffer.len() < MAX_READ {
            let filled = buffer.len();
            buffer.resize(filled + PIECE, 0);
            let read = rustix::io::read(&self.master, &mut buffer[filled..]);
            buffer.truncate(filled + read.unwrap_or(0));
            match read {
                Ok(0) | Err(Errno::IO) => {
                    self.is_over = true;
                    return Ok(());
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
