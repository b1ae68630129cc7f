//! The terminal of a process: a lock for writers, stopping as Ctrl-Z does, and a check for the foreground process group.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, getppid, getsid, kill_process};
#[cfg(target_os = "linux")]
use std::os::unix::fs::FileExt;

/// Takes the lock on a terminal, which keeps programs from writing at the same time. The descriptor holds the lock until it is
/// closed. Returns false if another program has the lock. For a terminal that cannot be locked, it returns true.
///
/// A single write to a terminal is atomic. But a partial write is continued with another one, and a second program could write
/// between the two, in the middle of an escape sequence.
pub fn try_lock_terminal(terminal: impl AsFd) -> bool {
    flock(terminal, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Releases the lock on a terminal.
pub fn unlock_terminal(terminal: impl AsFd) {
    // Cannot fail while the lock is held.
    let _ = flock(terminal, FlockOperation::Unlock);
}

/// Stops this process until its shell continues it, even if it handles SIGTSTP. Does nothing if this process is not a job of a
/// shell, because nobody would continue it.
pub fn stop_this_process() -> io::Result<()> {
    let session = getsid(None)?;
    let has_parent_there = getppid().is_some_and(|parent| getsid(Some(parent)) == Ok(session));
    if has_parent_there && getpgrp() != session {
        kill_process(getpid(), Signal::STOP)?;
    }
    Ok(())
}

/// Checks that the process behind a socket is in the foreground of its terminal: a shell takes the terminal away from a job that
/// is stopped or in the background.
#[derive(Debug)]
pub struct ForegroundCheck {
    /// `/proc/PID/stat` of the process. It stays open, because it is read at every key. If the PID is reused, reading fails.
    #[cfg(target_os = "linux")]
    stat: std::fs::File,
}

impl ForegroundCheck {
    /// Creates a check for the process behind a socket. `None` if the process is not known, as for one in a container.
    #[cfg(target_os = "linux")]
    pub fn of_peer(stream: &UnixStream) -> Option<Self> {
        let pid = rustix::net::sockopt::socket_peercred(stream).ok()?.pid.as_raw_nonzero();
        let stat = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { stat })
    }

    /// Returns `None`: only Linux is supported.
    #[cfg(not(target_os = "linux"))]
    pub fn of_peer(_: &UnixStream) -> Option<Self> {
        None
    }

    /// Returns true if the process runs and is in the foreground of its terminal.
    #[cfg(target_os = "linux")]
    pub fn has_terminal(&self) -> bool {
        // Enough for a name of 64 bytes and some fifty numbers.
        let mut stat = [0; 2048];
        let read = self.stat.read_at(&mut stat, 0).unwrap_or(0);
        is_in_foreground(&String::from_utf8_lossy(&stat[..read]))
    }

    /// Returns false: only Linux is supported.
    #[cfg(not(target_os = "linux"))]
    pub fn has_terminal(&self) -> bool {
        false
    }
}

/// Parses `/proc/PID/stat`: after the name come the state, the parent, the process group, the session, the terminal, and the
/// foreground process group of the terminal.
#[cfg(target_os = "linux")]
fn is_in_foreground(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_whitespace().take(6).collect();
    let [state, _parent, group, _session, _terminal, foreground] = fields[..] else { return false };
    !matches!(state, "T" | "t" | "Z" | "X") && group == foreground
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_stopped_or_in_the_background_is_not_there() {
        assert!(is_in_foreground("7 (a ) b) S 1 7 5 34816 7 4194304 1"));
        assert!(!is_in_foreground("7 (sh) S 1 7 5 34816 9 4194304 1"));
        assert!(!is_in_foreground("7 (sh) T 1 7 5 34816 7 4194304 1"));
        assert!(!is_in_foreground("7 (sh"));
    }

    #[test]
    fn a_process_that_has_ended_is_not_there() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let stat = std::fs::File::open(format!("/proc/{}/stat", child.id())).unwrap();
        let check = ForegroundCheck { stat };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!check.has_terminal());
    }

    #[test]
    fn the_process_behind_a_socket_is_known() {
        let (one, _two) = UnixStream::pair().unwrap();
        // Whether the tests have a terminal is not.
        let _ = ForegroundCheck::of_peer(&one).unwrap().has_terminal();
    }
}
