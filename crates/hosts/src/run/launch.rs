//! Starts the program, on a PTY or without one.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::Stdio;

use pty_process::blocking::{Command, Pty, open};
use ringer_platform::{Child, pty_error};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{OptionalActions, Termios, Winsize, tcsetattr, tcsetwinsize};

/// The commands to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program that calls [`super::lead_session`], with its arguments.
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
    pub(super) fn start_here(&self) -> io::Result<Child> {
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
    pub(super) fn start_on_pty(&self, settings: &Termios, size: Winsize) -> io::Result<(Child, Pty)> {
        let (program, arguments) = Self::program(&self.leader)?;
        let (pty, pts) = open().map_err(pty_error)?;
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
        let child = Child::of(command.spawn(pts).map_err(pty_error)?.id())?;
        let flags = fcntl_getfl(&pty)?;
        fcntl_setfl(&pty, flags | OFlags::NONBLOCK)?;
        Ok((child, pty))
    }
}
