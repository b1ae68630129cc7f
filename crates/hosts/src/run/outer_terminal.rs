//! The real terminal, which is in raw mode while a program runs on a PTY, and restored afterwards.

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

/// The sequences that turn focus reports on and off.
pub(crate) const FOCUS_ON: &[u8] = b"\x1b[?1004h";
pub(crate) const FOCUS_OFF: &[u8] = b"\x1b[?1004l";

/// The terminal of a standard stream. It is a new open file, so that `O_NONBLOCK` does not affect the shell and other programs
/// that share the stream.
#[derive(Debug)]
pub(crate) struct OuterTerminal {
    device: File,
    before: Termios,
    is_raw: bool,
    /// Focus reports are on in raw mode.
    reports_focus: bool,
}

impl OuterTerminal {
    /// Opens the terminal. Returns `None` if no standard stream is one.
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

    /// Restores the terminal in a panic hook, because release builds abort on panic and drop nothing.
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

    /// The settings from before raw mode, which the program's PTY gets.
    pub(crate) fn settings(&self) -> &Termios {
        &self.before
    }

    pub(crate) fn size(&self) -> Option<Winsize> {
        tcgetwinsize(&self.device).ok()
    }

    /// Returns true if this process may use the terminal: it is in the foreground, or this is not its controlling terminal.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.device).map_or(true, |group| group == getpgrp())
    }

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

    /// Restores the terminal. Errors are ignored, because the terminal may be gone.
    pub(crate) fn restore(&mut self) {
        if self.is_raw {
            if self.reports_focus {
                let _ = rustix::io::write(&self.device, FOCUS_OFF);
            }
            // In the background, the call would stop this process, and the shell has set its own settings.
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
    // After `su`, the device belongs to another user, but the controlling terminal can always be opened.
    options.open(path).or_else(|_| options.open("/dev/tty"))
}

/// The mark in front of the title.
const SIGN: &str = "●";

/// The title of the terminal, and its mark.
#[derive(Debug, Default)]
pub(crate) struct TitleRing {
    title: Option<String>,
    is_lit: bool,
    is_marked: bool,
}

impl TitleRing {
    /// Records a title of the program, which was passed to the terminal without a mark.
    pub(crate) fn set_title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
        self.is_marked = false;
    }

    pub(crate) fn ring(&mut self, is_lit: bool) {
        self.is_lit = is_lit;
    }

    /// Returns the sequence that updates the mark, if necessary. Without a title of the program, there is no mark.
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
