//! Starts the program, on a PTY or without one.
//!
//! On a PTY, a process between `ringer run` and its program leads the session, with the program in a separate process group, as
//! a shell would do it. The kernel stops a group on Ctrl-Z only if one of its processes has a parent in the same session but in
//! another group, so the program needs such a parent. It does what its child does: it stops when the child stops, ends like the
//! child, and continues the child when it is continued itself.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pty_process::blocking::{self, Pty, open};
use ringer_platform::{Child, Ending, pty_error};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, getppid, kill_process, kill_process_group, waitpid,
};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetpgrp, tcsetattr, tcsetpgrp, tcsetwinsize};

/// The interval of checks whether the process is in the foreground, which takes a fraction of a millisecond.
const FOREGROUND_CHECK: Duration = Duration::from_micros(200);

/// The commands to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program that calls [`lead_session`], with its arguments.
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
        let mut command = Command::new(program);
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
        let mut command = blocking::Command::new(program).args(arguments);
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

/// Runs a program in the foreground of this process's terminal, and waits until it has ended. The program must call
/// [`exec_in_foreground`].
pub fn lead_session(program: &OsString, arguments: &[OsString]) -> io::Result<Ending> {
    let terminal = open_terminal()?;
    let child = Command::new(program).args(arguments).process_group(0).spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    tcsetpgrp(&terminal, child)?;
    loop {
        let Some((_, status)) = waitpid(Some(child), WaitOptions::UNTRACED)? else { continue };
        if let Some(ending) = Ending::of(status) {
            return Ok(ending);
        }
        kill_process(getpid(), Signal::STOP)?;
        // The child may have ended meanwhile.
        let _ = kill_process_group(child, Signal::CONT);
    }
}

/// Executes the program once this process is in the foreground. Before that, the program would be stopped when it uses the
/// terminal, and miss the signals of keys. Returns only if it fails.
pub fn exec_in_foreground(program: &OsString, arguments: &[OsString]) -> io::Error {
    let terminal = match open_terminal() {
        Ok(terminal) => terminal,
        Err(error) => return error,
    };
    let leader = getppid();
    while tcgetpgrp(&terminal).is_ok_and(|group| group != getpgrp()) {
        if getppid() != leader {
            return io::Error::other("the process that leads the session has gone");
        }
        thread::sleep(FOREGROUND_CHECK);
    }
    drop(terminal);
    Command::new(program).args(arguments).exec()
}

fn open_terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}
