//! Signals as a descriptor for `poll`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringer_platform::{clear_wakes, wake_pair};
use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::low_level::pipe;

/// Signals that are forwarded to the program.
const FORWARDED: [(i32, Signal); 6] = [
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGTERM, Signal::TERM),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
];

/// The signals that have arrived.
#[derive(Debug)]
pub(crate) struct Signals {
    wakes: UnixStream,
    size: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    forwarded: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let (wakes, write) = wake_pair()?;
        let register = |signal: i32| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            // After the flag, so that it is set when the loop wakes.
            pipe::register(signal, write.try_clone()?)?;
            io::Result::Ok(flag)
        };
        register(SIGCHLD)?;
        let forwarded = FORWARDED.iter().map(|(number, signal)| Ok((*signal, register(*number)?)));
        let forwarded = forwarded.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { size: register(SIGWINCH)?, continued: register(SIGCONT)?, forwarded, wakes })
    }

    /// Becomes readable on every signal, including SIGCHLD.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// Must be called before the flags are read.
    pub(crate) fn clear_wakes(&self) {
        clear_wakes(&self.wakes);
    }

    pub(crate) fn take_size_change(&self) -> bool {
        self.size.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// Returns the signals to forward.
    pub(crate) fn take_forwarded(&self) -> impl Iterator<Item = Signal> + '_ {
        let came = self.forwarded.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed));
        came.map(|(signal, _)| *signal)
    }
}
