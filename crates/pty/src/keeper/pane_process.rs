//! A program on a PTY of its own, as the leader of a session.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use pty_process::blocking::{Command, Pts, open};
use ringer_platform::with_first_open_files;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Signal, kill_process_group};
use rustix::termios::{
    InputModes, OptionalActions, Winsize, tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize, ttyname,
};

use super::wire::{ByteString, StartRequest};
use crate::child::{Change, Child, Ending, io_error};

/// How many files are opened to start a program, and some more.
const SPAWN_FILES: u64 = 16;

/// A program that was started, and the name of its terminal.
#[derive(Debug)]
pub(super) struct PaneProcess {
    child: Child,
    tty: String,
}

impl PaneProcess {
    /// Starts a program. Gives the master of its PTY, too, or a sentence that says why not.
    pub(super) fn start(request: StartRequest) -> Result<(Self, OwnedFd), String> {
        let StartRequest { argv, environment, directory, columns, lines, .. } = request;
        let mut argv = argv.into_iter().map(ByteString::into_os_string);
        let program = argv.next().ok_or("there is no program to start: `argv` is empty")?;
        let directory = existing_directory(Path::new(&directory.into_os_string()));
        let (master, terminal, tty) = open_terminal(columns, lines)
            .map_err(|error| format!("cannot open a terminal for {}: {error}", program.display()))?;
        let environment =
            environment.into_iter().map(|(name, value)| (name.into_os_string(), value.into_os_string()));
        let command = Command::new(&program).args(argv).env_clear().envs(environment).current_dir(&directory);
        let needed = u64::try_from(master.as_raw_fd()).unwrap_or_default() + SPAWN_FILES;
        let started = with_first_open_files(needed, || command.spawn(terminal));
        let started = started.map_err(io_error).and_then(|child| Child::of(child.id()));
        match started {
            Ok(child) => Ok((Self { child, tty }, master)),
            Err(error) => Err(format!("cannot start {}: {error}", program.display())),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(super) fn tty(&self) -> &str {
        &self.tty
    }

    /// How it ended, if it has ended since the last call. Does not wait.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        loop {
            // Programs that are stopped are left to the shell in the pane.
            if let Change::Ended(ending) = self.child.change()? {
                return Some(ending);
            }
        }
    }

    /// Does what the kernel does when a terminal goes, even if another process still has the master: the program and what is
    /// in the foreground get a hang-up, and are continued to see it.
    pub(super) fn hang_up(&self, master: &OwnedFd) {
        let Some(group) = self.child.running() else { return };
        let foreground = tcgetpgrp(master).ok().filter(|foreground| *foreground != group);
        for group in foreground.into_iter().chain([group]) {
            for signal in [Signal::HUP, Signal::CONT] {
                // A group that has gone needs no signal.
                let _ = kill_process_group(group, signal);
            }
        }
    }
}

/// The directory, or the nearest one above it that exists: it may have been removed while a program was in it.
fn existing_directory(directory: &Path) -> PathBuf {
    let mut above = directory.ancestors();
    above.find(|directory| directory.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// A terminal of this size: its master, itself, and its name. No child inherits either end.
fn open_terminal(columns: u16, lines: u16) -> io::Result<(OwnedFd, Pts, String)> {
    let (master, terminal) = open().map_err(io_error)?;
    let mut settings = tcgetattr(&terminal)?;
    // Backspace removes a whole character, and not its last byte, from a line that the kernel edits.
    settings.input_modes |= InputModes::IUTF8;
    tcsetattr(&terminal, OptionalActions::Now, &settings)?;
    tcsetwinsize(&master, Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let tty = ttyname(&terminal, Vec::new())?.to_string_lossy().into_owned();
    let master = OwnedFd::from(master);
    do_not_block(&master)?;
    Ok((master, terminal, tty))
}

/// The flag belongs to the PTY and not to one descriptor of it: each process that has the master can change it.
pub(super) fn do_not_block(master: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(master, fcntl_getfl(master)? | OFlags::NONBLOCK)?)
}
