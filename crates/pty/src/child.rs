//! Starts the program on its PTY, and waits for it.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::Stdio;

use pty_process::blocking::{Command, Pty, open};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpid};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetpgrp, tcsetattr, tcsetwinsize};
use serde::{Deserialize, Serialize};

/// The commands to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program that calls [`crate::lead_session`], with its arguments.
    pub leader: Vec<OsString>,
    /// The program itself, which is started directly if there is no terminal: no session is needed then.
    pub command: Vec<OsString>,
    /// Changes of its environment. `None` removes a variable.
    pub variables: Vec<(OsString, Option<OsString>)>,
}

impl Launch {
    fn program(argv: &[OsString]) -> io::Result<(&OsString, &[OsString])> {
        argv.split_first().ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Starts the program in this process's session, without a PTY.
    pub(crate) fn start_here(&self) -> io::Result<Child> {
        let (program, arguments) = Self::program(&self.command)?;
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Child::of(command.spawn()?.id())
    }

    /// Starts the leader on a PTY with these settings. A standard stream that is not a terminal is inherited, so that the program
    /// sees the same pipes and files as without Ringer.
    pub(crate) fn start_on_pty(&self, settings: &Termios, size: Winsize) -> io::Result<(Child, Pty)> {
        let (program, arguments) = Self::program(&self.leader)?;
        let (pty, pts) = open().map_err(io_error)?;
        tcsetattr(&pts, OptionalActions::Now, settings)?;
        tcsetwinsize(&pty, size)?;
        let mut command = Command::new(program).args(arguments);
        for (name, value) in &self.variables {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if !io::stdin().is_terminal() {
            command = command.stdin(Stdio::inherit());
        }
        if !io::stdout().is_terminal() {
            command = command.stdout(Stdio::inherit());
        }
        if !io::stderr().is_terminal() {
            command = command.stderr(Stdio::inherit());
        }
        let child = Child::of(command.spawn(pts).map_err(io_error)?.id())?;
        let flags = fcntl_getfl(&pty)?;
        fcntl_setfl(&pty, flags | OFlags::NONBLOCK)?;
        Ok((child, pty))
    }
}

pub(crate) fn io_error(error: pty_process::Error) -> io::Error {
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

    pub(crate) fn of(status: WaitStatus) -> Option<Self> {
        let code = || status.exit_status().and_then(|code| u8::try_from(code).ok());
        status.terminating_signal().map(Self::Signal).or_else(|| code().map(Self::Exit))
    }
}

/// A change of a child's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Stopped,
    Ended(Ending),
}

/// A child process. Only this type waits for it.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    is_over: bool,
}

impl Child {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { pid, is_over: false })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The process id, until the process was reaped and the id can be reused.
    pub(crate) fn running(&self) -> Option<Pid> {
        (!self.is_over).then_some(self.pid)
    }

    /// Returns a change since the last call, without blocking.
    pub(crate) fn change(&mut self) -> Option<Change> {
        if self.is_over {
            return None;
        }
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        let (_, status) = waitpid(Some(self.pid), options).ok().flatten()?;
        let change = Ending::of(status).map(Change::Ended).or(status.stopped().then_some(Change::Stopped));
        self.is_over = matches!(change, Some(Change::Ended(_)));
        change
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if !self.is_over {
            // The child may have just ended.
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Sends a signal to the foreground process group of the PTY, as its terminal would.
    pub(crate) fn signal_foreground(&self, pty: &Pty, signal: Signal) {
        if self.is_over {
            return;
        }
        let sent = tcgetpgrp(pty).and_then(|group| kill_process_group(group, signal));
        if sent.is_err() {
            self.signal(signal);
        }
    }
}
