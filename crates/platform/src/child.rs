//! Child processes on a PTY: how they change and end.

use std::{io, process};

use pty_process::blocking::Pty;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, setrlimit,
    waitpid,
};
use rustix::termios::tcgetpgrp;
use serde::{Deserialize, Serialize};
use signal_hook::low_level::emulate_default_handler;

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
