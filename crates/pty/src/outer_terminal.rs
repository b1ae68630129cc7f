//! The real terminal while a program runs between it and a PTY: raw, and given back as it was.

use std::fs::File;
use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::panic;
use std::path::PathBuf;

use ringer_term::{Terminator, window_title};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{
    OptionalActions, Termios, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, ttyname,
};

/// Turns focus reports on and off.
pub(crate) const FOCUS_ON: &[u8] = b"\x1b[?1004h";
pub(crate) const FOCUS_OFF: &[u8] = b"\x1b[?1004l";

/// The terminal of a standard stream, opened anew: what is set on this descriptor, such as that it does not block, does not
/// apply to the shell and other programs that have the same stream.
#[derive(Debug)]
pub(crate) struct OuterTerminal {
    device: File,
    before: Termios,
    is_raw: bool,
    /// Whether focus reports are turned on while it is raw.
    reports_focus: bool,
}

impl OuterTerminal {
    /// `None` if no standard stream is a terminal.
    pub(crate) fn find(reports_focus: bool) -> io::Result<Option<Self>> {
        let (input, output, errors) = (stdin(), stdout(), stderr());
        let stream = if input.is_terminal() {
            input.as_fd()
        } else if output.is_terminal() {
            output.as_fd()
        } else if errors.is_terminal() {
            errors.as_fd()
        } else {
            return Ok(None);
        };
        let device = reopen(stream)?;
        let before = tcgetattr(&device)?;
        let terminal = Self { device, before, is_raw: false, reports_focus };
        terminal.restore_on_panic()?;
        Ok(Some(terminal))
    }

    /// A panic ends the shipped program at once, without dropping anything.
    fn restore_on_panic(&self) -> io::Result<()> {
        let (device, before) = (self.device.try_clone()?, self.before.clone());
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = rustix::io::write(&device, FOCUS_OFF);
            let _ = tcsetattr(&device, OptionalActions::Now, &before);
            previous(info);
        }));
        Ok(())
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Its settings before it was raw: those that the program finds on its PTY.
    pub(crate) fn settings(&self) -> &Termios {
        &self.before
    }

    pub(crate) fn size(&self) -> Option<Winsize> {
        tcgetwinsize(&self.device).ok()
    }

    /// Whether this process may use it: it is in the foreground, or it is not its controlling terminal.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.device).map_or(true, |group| group == getpgrp())
    }

    /// Whether every byte comes as it is typed.
    pub(crate) fn is_raw(&self) -> bool {
        self.is_raw
    }

    pub(crate) fn make_raw(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(&self.device, OptionalActions::Now, &raw)?;
        self.is_raw = true;
        if self.reports_focus {
            let _ = rustix::io::write(&self.device, FOCUS_ON);
        }
        Ok(())
    }

    /// Gives it back as it was. The settings of a terminal that has gone cannot be restored and need not be.
    pub(crate) fn restore(&mut self) {
        if self.is_raw {
            if self.reports_focus {
                let _ = rustix::io::write(&self.device, FOCUS_OFF);
            }
            // In the background the call would stop this process, and the settings are the shell's.
            if self.is_ours() {
                let _ = tcsetattr(&self.device, OptionalActions::Now, &self.before);
            }
            self.is_raw = false;
        }
    }
}

impl Drop for OuterTerminal {
    fn drop(&mut self) {
        self.restore();
    }
}

fn reopen(stream: BorrowedFd<'_>) -> io::Result<File> {
    let name = ttyname(stream, Vec::new())?;
    let path = PathBuf::from(std::ffi::OsString::from(name.to_string_lossy().into_owned()));
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(flags);
    // After `su` the device belongs to another user, but the controlling terminal can always be opened.
    options.open(path).or_else(|_| options.open("/dev/tty"))
}

/// What the title begins with.
const SIGN: &str = "●";

/// The title, and whether a mark is in front of it.
#[derive(Debug, Default)]
pub(crate) struct TitleRing {
    title: Option<String>,
    is_lit: bool,
    is_marked: bool,
}

impl TitleRing {
    /// The program set a title, which went to the terminal.
    pub(crate) fn set_title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
        self.is_marked = false;
    }

    pub(crate) fn ring(&mut self, is_lit: bool) {
        self.is_lit = is_lit;
    }

    /// What has to be written to the terminal now. A title that no program has set is left alone.
    pub(crate) fn change(&mut self) -> Option<String> {
        if self.is_lit == self.is_marked {
            return None;
        }
        let title = self.title.as_deref()?;
        self.is_marked = self.is_lit;
        let text = if self.is_lit { format!("{SIGN} {title}") } else { title.to_owned() };
        Some(window_title(&text, Terminator::Bel))
    }
}

#[cfg(test)]
mod tests {
    use super::TitleRing;

    #[test]
    fn a_mark_is_in_front_of_the_last_title_as_long_as_it_rings() {
        let mut ring = TitleRing::default();
        ring.ring(true);
        assert_eq!(ring.change(), None, "there is no title to bring back");
        ring.set_title("✳ fix it");
        assert_eq!(ring.change().unwrap(), "\x1b]2;● ✳ fix it\x07");
        assert_eq!(ring.change(), None);
        ring.set_title("✳ test it");
        assert_eq!(ring.change().unwrap(), "\x1b]2;● ✳ test it\x07");
        ring.ring(false);
        assert_eq!(ring.change().unwrap(), "\x1b]2;✳ test it\x07");
        ring.set_title("other");
        assert_eq!(ring.change(), None);
    }
}
