//! The terminal of a process: a lock on it, and whether the process has it in the foreground.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, getppid, getsid, kill_process};
#[cfg(target_os = "linux")]
use std::os::unix::fs::FileExt;

/// Takes the lock on a terminal, for programs that write to it at the same time. It is held by the descriptor, and gone with it.
/// Returns false if another program has it. A terminal that cannot be locked counts as locked.
///
/// One write to a terminal is whole. But what a terminal does not take at once is written in pieces, and another program could
/// write between them, in the middle of an escape sequence.
pub fn try_lock_terminal(terminal: impl AsFd) -> bool {
    flock(terminal, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Gives it back.
pub fn unlock_terminal(terminal: impl AsFd) {
    // It cannot fail for one that is locked.
    let _ = flock(terminal, FlockOperation::Unlock);
}

/// Stops this process until its shell continues it, also if it catches the signal of Ctrl-Z. One that is no job of a shell would
/// not be continued, and goes on.
pub fn stop_this_process() -> io::Result<()> {
    let session = getsid(None)?;
    let has_parent_there = getppid().is_some_and(|parent| getsid(Some(parent)) == Ok(session));
    if has_parent_there && getpgrp() != session {
        kill_process(getpid(), Signal::STOP)?;
    }
    Ok(())
}

/// Whether the process behind a socket may use its terminal: a shell takes it back from a job that is stopped or in the
/// background.
#[derive(Debug)]
pub struct ForegroundCheck {
    /// Its `/proc/PID/stat`. It stays open: it is asked at every key, and another process with that number never answers.
    #[cfg(target_os = "linux")]
    stat: std::fs::File,
}

impl ForegroundCheck {
    /// The process behind a socket. `None` where that is not known, as for one in a container.
    #[cfg(target_os = "linux")]
    pub fn of_peer(stream: &UnixStream) -> Option<Self> {
        let pid = rustix::net::sockopt::socket_peercred(stream).ok()?.pid.as_raw_nonzero();
        let stat = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { stat })
    }

    /// The process behind a socket. Only Linux tells.
    #[cfg(not(target_os = "linux"))]
    pub fn of_peer(_: &UnixStream) -> Option<Self> {
        None
    }

    /// Whether it runs, and its terminal is with it.
    #[cfg(target_os = "linux")]
    pub fn has_terminal(&self) -> bool {
        // A name of 64 bytes and some fifty numbers.
        let mut stat = [0; 2048];
        let read = self.stat.read_at(&mut stat, 0).unwrap_or(0);
        is_in_foreground(&String::from_utf8_lossy(&stat[..read]))
    }

    /// Whether it runs, and its terminal is with it.
    #[cfg(not(target_os = "linux"))]
    pub fn has_terminal(&self) -> bool {
        false
    }
}

/// Reads `/proc/PID/stat`: behind the name are the state, the parent, the group, the session, the terminal, and the group that
/// the terminal is with.
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
