//! The signals of a client, as something to poll.

use std::io;
use std::os::unix::net::UnixStream;

use ringer_platform::wake_pair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::low_level::pipe;

/// Each becomes readable when its signal has come.
pub(super) struct Watch {
    pub(super) size_changes: UnixStream,
    pub(super) ends: UnixStream,
    /// The process is to stop, and stops itself once it has given its terminal back.
    pub(super) stops: UnixStream,
    /// It was stopped, and goes on.
    pub(super) continued: UnixStream,
}

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let (ends, write) = wake_pair()?;
        pipe::register(SIGHUP, write.try_clone()?)?;
        pipe::register(SIGTERM, write)?;
        Ok(Self { size_changes: on(SIGWINCH)?, ends, stops: on(SIGTSTP)?, continued: on(SIGCONT)? })
    }

    /// Whether the process is to end.
    pub(super) fn is_over(&self) -> bool {
        let mut fds = [PollFd::new(&self.ends, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

fn on(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = wake_pair()?;
    pipe::register(signal, write)?;
    Ok(read)
}
