//! The terminal of a client: raw mode, its line settings before that, and the modes that follow the focused pane.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::panic;

use rustix::fs::{Mode, OFlags, Stat, fstat};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcgetsid, tcgetwinsize, tcsetattr, ttyname,
};
use serde::{Deserialize, Serialize};

use crate::emulator::{self, MouseMode};

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
            restore(&device, &before);
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
        restore(&self.device, &self.before);
        let result = meanwhile();
        self.make_raw()?;
        result
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if self.is_entered {
            restore(&self.device, &self.before);
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

fn restore(mut device: &File, before: &Termios) {
    // Errors are ignored: the terminal may be gone.
    let _ = device.write_all(LEAVE.as_bytes());
    let _ = tcsetattr(device, OptionalActions::Now, before);
}

/// The type of the system's flags.
#[cfg(target_os = "linux")]
type Flags = u32;
#[cfg(not(target_os = "linux"))]
type Flags = u64;

/// The line settings that raw mode changes. The server restores them if the client is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineSettings {
    input: Flags,
    output: Flags,
    control: Flags,
    local: Flags,
    /// VMIN and VTIME.
    read_minimum: u8,
    read_time: u8,
}

impl LineSettings {
    pub(crate) fn of(settings: &Termios) -> Self {
        Self {
            input: settings.input_modes.bits(),
            output: settings.output_modes.bits(),
            control: settings.control_modes.bits(),
            local: settings.local_modes.bits(),
            read_minimum: settings.special_codes[SpecialCodeIndex::VMIN],
            read_time: settings.special_codes[SpecialCodeIndex::VTIME],
        }
    }

    /// Restores the settings of a terminal that is still raw. If it is not, a shell has already set its own.
    pub(crate) fn restore(self, terminal: impl AsFd) {
        // This fails if the terminal is gone.
        let Ok(mut settings) = tcgetattr(&terminal) else { return };
        let mut raw = settings.clone();
        raw.make_raw();
        if Self::of(&settings) != Self::of(&raw) {
            return;
        }
        settings.input_modes = InputModes::from_bits_retain(self.input);
        settings.output_modes = OutputModes::from_bits_retain(self.output);
        settings.control_modes = ControlModes::from_bits_retain(self.control);
        settings.local_modes = LocalModes::from_bits_retain(self.local);
        settings.special_codes[SpecialCodeIndex::VMIN] = self.read_minimum;
        settings.special_codes[SpecialCodeIndex::VTIME] = self.read_time;
        let _ = tcsetattr(&terminal, OptionalActions::Now, &settings);
    }
}

/// The modes that a client's terminal is set to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OuterModes {
    application_cursor: bool,
    application_keypad: bool,
    kitty_flags: u8,
    has_motion: bool,
}

impl OuterModes {
    /// The modes with which the terminal sends the keys that the focused program expects. `mouse` is `None` if the terminal
    /// handles the mouse itself.
    pub(crate) fn of(modes: emulator::InputModes, mouse: Option<MouseMode>) -> Self {
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            kitty_flags: modes.kitty_flags,
            has_motion: mouse == Some(MouseMode::Motion),
        }
    }

    /// Appends the sequences that change the modes from `before` to `self`.
    pub(crate) fn write_changes(self, before: Self, out: &mut String) {
        let switch = |is_on: bool| if is_on { 'h' } else { 'l' };
        if self.application_cursor != before.application_cursor {
            let _ = write!(out, "\x1b[?1{}", switch(self.application_cursor));
        }
        if self.application_keypad != before.application_keypad {
            out.push_str(if self.application_keypad { "\x1b=" } else { "\x1b>" });
        }
        if self.kitty_flags != before.kitty_flags {
            let _ = write!(out, "\x1b[={};1u", self.kitty_flags);
        }
        if self.has_motion != before.has_motion {
            let _ = write!(out, "\x1b[?1003{}", switch(self.has_motion));
            // Resetting 1003 turns off mouse reporting as a whole.
            if !self.has_motion {
                out.push_str("\x1b[?1002h");
            }
        }
    }
}

/// Takes over a terminal: alternate screen, bracketed paste, mouse, focus events, and an entry on the stack of kitty's keyboard
/// flags.
pub(crate) fn enter(mouse: bool) -> String {
    let mouse = if mouse { "\x1b[?1002h\x1b[?1006h" } else { "" };
    format!("\x1b[?1049h\x1b[?2004h\x1b[?1004h{mouse}\x1b[>0u\x1b[?25l")
}

/// Queries kitty's keyboard flags, and then the device attributes, which every terminal answers: if only the second answer
/// arrives, the terminal has no such flags.
pub(crate) const ASK_KEYBOARD: &str = "\x1b[?u\x1b[c";

/// Undoes [`enter`] and all modes.
pub(crate) const LEAVE: &str = "\x1b[<u\x1b[?1003l\x1b[?1002l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m\x1b[0 q\x1b[?25h\x1b[?1049l";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_size_has_the_usual_one() {
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
    fn different_terminals_are_not_the_same() {
        let open = || pty_process::blocking::open().unwrap();
        let ((_master, one), (_other_master, other)) = (open(), open());
        let again = one.as_fd().try_clone_to_owned().unwrap();
        assert!(is_same_terminal(&one, &again));
        assert!(!is_same_terminal(&one, &other));
    }

    #[test]
    fn line_settings_are_restored_unless_another_program_has_set_its_own() {
        let (_master, terminal) = pty_process::blocking::open().unwrap();
        let now = || tcgetattr(&terminal).unwrap();
        let before = LineSettings::of(&now());
        let mut raw = now();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).unwrap();
        assert_ne!(LineSettings::of(&now()), before);
        before.restore(&terminal);
        assert_eq!(LineSettings::of(&now()), before);
        let mut of_shell = now();
        of_shell.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &of_shell).unwrap();
        before.restore(&terminal);
        assert_eq!(LineSettings::of(&now()), LineSettings::of(&of_shell));
    }

    #[test]
    fn only_modes_that_differ_are_set() {
        let modes = emulator::InputModes {
            application_cursor: true,
            kitty_flags: 5,
            ..emulator::InputModes::default()
        };
        let modes = OuterModes::of(modes, Some(MouseMode::Motion));
        let mut out = String::new();
        modes.write_changes(OuterModes::default(), &mut out);
        assert_eq!(out, "\x1b[?1h\x1b[=5;1u\x1b[?1003h");
        out.clear();
        modes.write_changes(modes, &mut out);
        assert_eq!(out, "");
        OuterModes::default().write_changes(modes, &mut out);
        assert_eq!(out, "\x1b[?1l\x1b[=0;1u\x1b[?1003l\x1b[?1002h");
    }
}
