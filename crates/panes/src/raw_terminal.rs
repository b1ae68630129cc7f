//! The terminal of a client while it shows panes.

use std::fs::File;
use std::io::{self, IsTerminal, Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::panic;

use rustix::fs::{Mode, OFlags, Stat, fstat};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetsid, tcgetwinsize, tcsetattr, ttyname};

use crate::line_settings::LineSettings;
use crate::outer_modes::LEAVE;

/// This process's terminal in raw mode. Dropping it restores the terminal.
pub(crate) struct RawTerminal {
    device: File,
    before: Termios,
    raw: Termios,
    /// The size for a terminal that does not report one.
    usual_size: (u16, u16),
    /// The server has written to it, so it has to be reset.
    is_entered: bool,
}

impl RawTerminal {
    pub(crate) fn take(usual_size: (u16, u16)) -> io::Result<Self> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            return Err(io::Error::other("panes need a terminal for input and output"));
        }
        if !is_same_terminal(&stdin(), &stdout()) {
            return Err(io::Error::other("standard input and output are two different terminals"));
        }
        let device = File::from(stdout().as_fd().try_clone_to_owned()?);
        let before = tcgetattr(&device)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&device, OptionalActions::Now, &raw)?;
        let terminal = Self { device, before, raw, usual_size, is_entered: false };
        let (device, before) = (terminal.device.try_clone()?, terminal.before.clone());
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back(&device, &before);
            previous(info);
        }));
        Ok(terminal)
    }

    pub(crate) fn size(&self) -> (u16, u16) {
        size_of(&self.device, self.usual_size)
    }

    /// The settings from before raw mode.
    pub(crate) fn line_settings(&self) -> LineSettings {
        LineSettings::of(&self.before)
    }

    /// A descriptor of the terminal for the server. It is a new open file, so that its `O_NONBLOCK` does not affect other
    /// programs. Returns `None` if the terminal has no name here, or belongs to another user.
    pub(crate) fn for_server(&self) -> Option<OwnedFd> {
        let name = ttyname(&self.device, Vec::new()).ok()?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(name, flags, Mode::empty()).ok()?;
        // In a container, the name may belong to another terminal.
        is_same_device(&opened, &self.device).then_some(opened)
    }

    /// Sets raw mode again, after the shell or another program had the terminal.
    pub(crate) fn make_raw(&self) -> io::Result<()> {
        Ok(tcsetattr(&self.device, OptionalActions::Now, &self.raw)?)
    }

    /// Records that the server writes to the terminal from now on.
    pub(crate) fn enter(&mut self) {
        self.is_entered = true;
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_entered = true;
        self.device.write_all(bytes)
    }

    /// Restores the terminal while `meanwhile` runs.
    pub(crate) fn lend(&mut self, meanwhile: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        give_back(&self.device, &self.before);
        let result = meanwhile();
        self.make_raw()?;
        result
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if self.is_entered {
            give_back(&self.device, &self.before);
        } else {
            let _ = tcsetattr(&self.device, OptionalActions::Now, &self.before);
        }
    }
}

/// The columns and lines of a terminal. Serial lines and some containers report 0 for unknown.
fn size_of(device: impl AsFd, usual: (u16, u16)) -> (u16, u16) {
    let known = |number: u16, usual: u16| if number == 0 { usual } else { number };
    tcgetwinsize(device).map_or(usual, |size| (known(size.ws_col, usual.0), known(size.ws_row, usual.1)))
}

/// The size for a terminal that does not report one: `COLUMNS` and `LINES`, as in other programs, or 80x24.
pub(crate) fn usual_size(environment: &[(String, String)]) -> (u16, u16) {
    let set = |name: &str| {
        let value = environment.iter().find(|(own, _)| own == name).and_then(|(_, value)| value.parse().ok());
        value.filter(|number| *number > 0)
    };
    (set("COLUMNS").unwrap_or(80), set("LINES").unwrap_or(24))
}

fn is_same_device(one: impl AsFd, other: impl AsFd) -> bool {
    let number = |status: &Stat| (status.st_rdev, status.st_dev);
    matches!((fstat(one), fstat(other)), (Ok(one), Ok(other)) if number(&one) == number(&other))
}

/// Returns true if two descriptors refer to the same terminal. `/dev/tty` is another device than the terminal that it stands for,
/// so the sessions are compared, too: a session has only one terminal.
fn is_same_terminal(one: &impl AsFd, other: &impl AsFd) -> bool {
    is_same_device(one, other)
        || matches!((tcgetsid(one), tcgetsid(other)), (Ok(one), Ok(other)) if one == other)
}

fn give_back(mut device: &File, before: &Termios) {
    // Errors are ignored: the terminal may be gone.
    let _ = device.write_all(LEAVE.as_bytes());
    let _ = tcsetattr(device, OptionalActions::Now, before);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_says_no_size_has_the_usual_one() {
        let environment = |columns: &str| vec![("COLUMNS".to_owned(), columns.to_owned())];
        let check = |columns: &str, expected| assert_eq!(usual_size(&environment(columns)), expected);
        check("132", (132, 24));
        check("0", (80, 24));
        check("many", (80, 24));
        let (master, terminal) = pty_process::blocking::open().unwrap();
        assert_eq!(size_of(&terminal, (132, 24)), (132, 24));
        master.resize(pty_process::Size::new(0, 50)).unwrap();
        assert_eq!(size_of(&terminal, (132, 24)), (50, 24));
        assert_eq!(size_of(File::open("/dev/null").unwrap(), (80, 24)), (80, 24));
    }

    #[test]
    fn two_terminals_are_told_apart() {
        let open = || pty_process::blocking::open().unwrap();
        let ((_master, one), (_other_master, other)) = (open(), open());
        let again = one.as_fd().try_clone_to_owned().unwrap();
        assert!(is_same_terminal(&one, &again));
        assert!(!is_same_terminal(&one, &other));
    }
}
