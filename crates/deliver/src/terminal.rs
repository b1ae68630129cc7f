//! Writes an escape sequence to a terminal, with a deadline. `ringer-term` encodes the sequence.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::try_lock_terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::Error;

/// The default deadline: how long a terminal may refuse output.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(2);
/// How often to retry the lock of a terminal that another program is writing to. A window that redraws all the time leaves about
/// this much time between two frames.
const LOCK_PAUSE: Duration = Duration::from_micros(500);

/// Writes a whole sequence to a terminal that this user owns.
///
/// Never blocks: a terminal that was stopped with Ctrl-S, or that no process reads, is an error after the deadline.
/// A stopped terminal takes nothing at all, so nothing of the sequence is left in it. Only one whose buffer fills up
/// in the middle keeps a part; the rest is abandoned, because waiting for a dead reader would be for ever. The terminal
/// drops an unfinished sequence at the next escape that the program in it writes.
///
/// The terminal is locked meanwhile, so that the sequence does not mix with what the pane window writes to it.
///
/// Anything but a terminal of this user is refused before a byte is written.
pub async fn write(tty: &Path, bytes: &[u8], deadline: Duration) -> Result<(), Error> {
    write_if(tty, bytes, deadline, || true).await
}

/// Like [`write()`], if `is_meant` says that the device is still the same terminal. It is called once the device is open: the
/// system reuses device names, but not while one is open, so nothing is written to another session's terminal.
pub async fn write_if(
    tty: &Path,
    bytes: &[u8],
    deadline: Duration,
    is_meant: impl FnOnce() -> bool + Send + 'static,
) -> Result<(), Error> {
    let until = Instant::now() + deadline;
    let (path, owned) = (tty.to_owned(), bytes.to_vec());
    // On a thread of the pool: the reactor takes a foreign descriptor only by unsafe code.
    let writing = tokio::task::spawn_blocking(move || write_until(&path, &owned, until, is_meant));
    writing.await.unwrap_or_else(|error| {
        Err(Error::Terminal { path: tty.to_owned(), source: io::Error::other(error.to_string()) })
    })
}

fn write_until(
    tty: &Path,
    bytes: &[u8],
    until: Instant,
    is_meant: impl FnOnce() -> bool,
) -> Result<(), Error> {
    let failed = |source| Error::Terminal { path: tty.to_owned(), source };
    // Opening some devices has side effects, so check before opening, and check the opened device again.
    check(tty, &std::fs::metadata(tty).map_err(failed)?)?;
    let mut terminal = open(tty).map_err(failed)?;
    check(tty, &terminal.metadata().map_err(failed)?)?;
    if !rustix::termios::isatty(&terminal) {
        return Err(Error::NotATerminal { path: tty.to_owned() });
    }
    if !is_meant() {
        return Err(Error::OtherSession { path: tty.to_owned() });
    }
    // The lock is released when the terminal is closed.
    while !try_lock_terminal(&terminal) {
        if Instant::now() >= until {
            return Err(Error::TerminalStopped { path: tty.to_owned(), written: 0, of: bytes.len() });
        }
        thread::sleep(LOCK_PAUSE);
    }
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match terminal.write(rest) {
            Ok(0) => return Err(failed(ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !wait_writable(&terminal, until).map_err(failed)? {
                    return Err(Error::TerminalStopped { path: tty.to_owned(), written, of: bytes.len() });
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Waits until the terminal takes output again. Returns false at the deadline.
fn wait_writable(terminal: &File, until: Instant) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    let timeout = Timespec::try_from(left).ok();
    match poll(&mut [PollFd::new(terminal, PollFlags::OUT)], timeout.as_ref()) {
        Ok(0) => Ok(false),
        Ok(_) | Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn open(tty: &Path) -> io::Result<File> {
    // NOCTTY: the hub has no terminal, and opening one must not make it its own.
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(tty)
}

fn check(tty: &Path, found: &Metadata) -> Result<(), Error> {
    if !found.file_type().is_char_device() {
        return Err(Error::NotATerminal { path: tty.to_owned() });
    }
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner == own { Ok(()) } else { Err(Error::NotOurs { path: tty.to_owned(), owner, own }) }
}
