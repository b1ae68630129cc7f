//! Terminals, and the child processes on them: how they change and end.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;

use pty_process::blocking::Pty;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpgrp, getpid, getppid, getsid, kill_process,
    kill_process_group, setrlimit, waitpid,
};
use rustix::termios::tcgetpgrp;
use serde::{Deserialize, Serialize};
use signal_hook::low_level::emulate_default_handler;

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
        let mut child = process::Command::new("sleep").arg("1000").spawn().unwrap();
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

/// Returns the system's error of a failed PTY operation.
pub fn pty_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// With an exit code.
    Exit(u8),
    /// By a signal.
    Signal(i32),
}

impl Ending {
    /// Returns true for exit code 0.
    pub fn is_success(self) -> bool {
        self == Self::Exit(0)
    }

    /// A description for people.
    pub fn text(self) -> String {
        match self {
            Self::Exit(0) => "finished".to_owned(),
            Self::Exit(code) => format!("exit status {code}"),
            Self::Signal(number) => match signal_hook::low_level::signal_name(number) {
                Some(name) => format!("ended by {name}"),
                None => format!("ended by signal {number}"),
            },
        }
    }

    /// Returns how the program ended, or `None` if it was only stopped or continued.
    pub fn of(status: WaitStatus) -> Option<Self> {
        let code = || status.exit_status().and_then(|code| u8::try_from(code).ok());
        status.terminating_signal().map(Self::Signal).or_else(|| code().map(Self::Exit))
    }
}

/// A change of a child's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A signal stopped it.
    Stopped,
    /// It is over, and reaped.
    Ended(Ending),
}

/// A child process. Only this type waits for it.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    is_over: bool,
}

impl Child {
    /// Takes over a child of this process.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, is_over: false })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The process id, until the process was reaped and the id can be reused.
    pub fn running(&self) -> Option<Pid> {
        (!self.is_over).then_some(self.pid)
    }

    /// Returns a change since the last call, without blocking.
    pub fn change(&mut self) -> Option<Change> {
        if self.is_over {
            return None;
        }
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        let (_, status) = waitpid(Some(self.pid), options).ok().flatten()?;
        let change = Ending::of(status).map(Change::Ended).or(status.stopped().then_some(Change::Stopped));
        self.is_over = matches!(change, Some(Change::Ended(_)));
        change
    }

    /// Sends a signal, unless the process was reaped.
    pub fn signal(&self, signal: Signal) {
        if !self.is_over {
            // The child may have just ended.
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Sends a signal to the foreground process group of the PTY, as its terminal would.
    pub fn signal_foreground(&self, pty: &Pty, signal: Signal) {
        if self.is_over {
            return;
        }
        let sent = tcgetpgrp(pty).and_then(|group| kill_process_group(group, signal));
        if sent.is_err() {
            self.signal(signal);
        }
    }
}

/// Ends this process by a signal, so that a shell knows how the program ended, and an interrupted script ends. If that is not
/// possible, the exit code is the usual one of shells.
pub fn die_by(signal: i32) -> ! {
    // No core dump: the program has written its own, if one is wanted.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = emulate_default_handler(signal);
    process::exit(128 + signal)
}
