//! The signals of the keeper's process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ringer_platform::{clear_wakes, wake_pair};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use signal_hook::{flag, low_level};

/// Signals that change nothing. They are caught and not ignored: a program that is started inherits what is ignored, also what
/// the keeper inherited itself (from `nohup`, or as a shell's background job), while what is caught has its default there.
const WITHOUT_EFFECT: [i32; 10] =
    [SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2];

/// Tells when a child has changed.
#[derive(Debug)]
pub(super) struct KeeperSignals {
    wakes: UnixStream,
}

impl KeeperSignals {
    pub(super) fn new() -> io::Result<Self> {
        let (wakes, write) = wake_pair()?;
        low_level::pipe::register(SIGCHLD, write)?;
        for signal in WITHOUT_EFFECT {
            flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        // It ends the keeper, as it does by default, even if it was ignored when the keeper was started.
        flag::register_conditional_default(SIGTERM, Arc::new(AtomicBool::new(true)))?;
        Ok(Self { wakes })
    }

    /// Becomes readable when a child has changed.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// To be called before the children are asked.
    pub(super) fn clear_wakes(&self) {
        clear_wakes(&self.wakes);
    }
}
