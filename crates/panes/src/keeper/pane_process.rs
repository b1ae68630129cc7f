//! A program on its own PTY, as a session leader.

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
use ringer_platform::{Change, Child, Ending, pty_error};

/// The number of files that are opened to start a program, with a margin.
const SPAWN_FILES: u64 = 16;

/// A started program and the name of its terminal.
#[derive(Debug)]
pub(super) struct PaneProcess {
    child: Child,
    tty: String,
}

impl PaneProcess {
    /// Starts a program. Also returns the master of its PTY. The error is a sentence for people.
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
        let started = started.map_err(pty_error).and_then(|child| Child::of(child.id()));
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

    /// How the program ended, if it has ended since the last call. Does not block.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        loop {
            // Programs that are stopped are left to the shell in the pane.
            if let Change::Ended(ending) = self.child.change()? {
                return Some(ending);
            }
        }
    }

    /// Does what the kernel does when a terminal is closed, even if another process still has the master: the program and the
    /// foreground group get SIGHUP, and SIGCONT so that they see it.
    pub(super) fn hang_up(&self, master: &OwnedFd) {
        let Some(group) = self.child.running() else { return };
        let foreground = tcgetpgrp(master).ok().filter(|foreground| *foreground != group);
        for group in foreground.into_iter().chain([group]) {
            for signal in [Signal::HUP, Signal::CONT] {
                // The group may be gone.
                let _ = kill_process_group(group, signal);
            }
        }
    }
}

/// Returns the directory, or its nearest parent that exists: it may have been removed while a program was in it.
fn existing_directory(directory: &Path) -> PathBuf {
    let mut above = directory.ancestors();
    above.find(|directory| directory.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Opens a PTY. Returns the master, the terminal and its name. Children inherit neither end.
fn open_terminal(columns: u16, lines: u16) -> io::Result<(OwnedFd, Pts, String)> {
    let (master, terminal) = open().map_err(pty_error)?;
    let mut settings = tcgetattr(&terminal)?;
    // With IUTF8, Backspace removes a whole character, and not only its last byte, while the kernel edits a line.
    settings.input_modes |= InputModes::IUTF8;
    tcsetattr(&terminal, OptionalActions::Now, &settings)?;
    tcsetwinsize(&master, Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let tty = ttyname(&terminal, Vec::new())?.to_string_lossy().into_owned();
    let master = OwnedFd::from(master);
    do_not_block(&master)?;
    Ok((master, terminal, tty))
}

/// Makes a master non-blocking. The flag belongs to the open file, which is shared with the server, so either process can
/// change it.
pub(super) fn do_not_block(master: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(master, fcntl_getfl(master)? | OFlags::NONBLOCK)?)
}
