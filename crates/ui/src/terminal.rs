//! Owns the terminal while the UI runs (raw mode, alternate screen), and waits for its input.

use std::io::{self, Write, stdin, stdout};
use std::os::unix::net::UnixStream;
use std::panic;
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ringer_platform::{clear_wakes, stop_this_process, wake, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::low_level::pipe;

/// The terminal in raw mode. Restores it when dropped.
#[derive(Debug)]
pub(crate) struct OwnedTerminal {
    mouse: bool,
}

impl OwnedTerminal {
    pub(crate) fn take(mouse: bool) -> io::Result<Self> {
        enter(mouse)?;
        let previous = panic::take_hook();
        // Restores the terminal first, so that the panic message is readable.
        panic::set_hook(Box::new(move |info| {
            leave();
            previous(info);
        }));
        Ok(Self { mouse })
    }

    /// Restores the terminal while something else uses it.
    pub(crate) fn release_during<T>(&self, meanwhile: impl FnOnce() -> T) -> io::Result<T> {
        leave();
        let result = meanwhile();
        enter(self.mouse)?;
        Ok(result)
    }

    /// Stops the process, as Ctrl-Z does, until the shell continues it.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.release_during(stop_this_process)?
    }
}

impl Drop for OwnedTerminal {
    fn drop(&mut self) {
        leave();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let mut out = stdout();
    queue!(out, EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse {
        queue!(out, EnableMouseCapture)?;
    }
    out.flush()
}

fn leave() {
    // Errors do not matter: the terminal is gone then.
    let _ = execute!(stdout(), DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Reads the terminal's input. Called only if there is some, so it does not block.
pub(crate) fn read_input() -> io::Result<Vec<u8>> {
    let mut room = [0; 4096];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut room))?;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(room[..read].to_vec())
}

/// The reasons why [`Waiter::wait`] returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// The terminal has input to read.
    pub(crate) input: bool,
    /// The terminal may have a new size.
    pub(crate) resized: bool,
    /// The process must end: its terminal is gone, or it received SIGHUP or SIGTERM.
    pub(crate) terminate: bool,
}

/// Waits for the terminal, for signals and for other threads at once.
#[derive(Debug)]
pub(crate) struct Waiter {
    size_changes: UnixStream,
    terminate: UnixStream,
    wakes: UnixStream,
}

/// Wakes a [`Waiter`] from another thread.
#[derive(Debug)]
pub(crate) struct Waker(UnixStream);

impl Waker {
    pub(crate) fn wake(&self) {
        wake(&self.0);
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Waiter {
    pub(crate) fn new() -> io::Result<(Self, Waker)> {
        let (size_changes, write) = wake_pair()?;
        pipe::register(SIGWINCH, write)?;
        let (terminate, write) = wake_pair()?;
        pipe::register(SIGHUP, write.try_clone()?)?;
        pipe::register(SIGTERM, write)?;
        let (wakes, write) = wake_pair()?;
        Ok((Self { size_changes, terminate, wakes }, Waker(write)))
    }

    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<Wakeup> {
        let terminal = stdin();
        let mut ready = [
            PollFd::new(&terminal, PollFlags::IN),
            PollFd::new(&self.size_changes, PollFlags::IN),
            PollFd::new(&self.terminate, PollFlags::IN),
            PollFd::new(&self.wakes, PollFlags::IN),
        ];
        let timeout = Timespec::try_from(timeout).ok();
        loop {
            match poll(&mut ready, timeout.as_ref()) {
                Ok(_) => break,
                // Interrupted by a signal. Its handler has written to one of the streams, so the next poll finds it.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let is_ready =
            |index: usize| ready.get(index).is_some_and(|one| one.revents().contains(PollFlags::IN));
        let is_gone = ready.first().is_some_and(|one| one.revents().contains(PollFlags::HUP));
        let wakeup = Wakeup { input: is_ready(0), resized: is_ready(1), terminate: is_ready(2) || is_gone };
        clear_wakes(&self.size_changes);
        clear_wakes(&self.wakes);
        Ok(wakeup)
    }
}
