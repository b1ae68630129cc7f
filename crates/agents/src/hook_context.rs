//! Where a hook call runs, and what it did or why it failed.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use ringer_core::message::{Agent, MessageOrigin};
use ringer_core::toast::Observation;
use ringer_journal::{Error as JournalError, Home};

use crate::client::{ClientPaths, InputError};

/// Where a hook call runs. Values that cost time are functions, called only when they are needed.
pub struct HookContext<'a> {
    /// The home.
    pub home: Home,
    /// Reads the monotonic clock.
    pub clock: &'a dyn Fn() -> Duration,
    /// Terminal and surface.
    pub origin: &'a dyn Fn() -> MessageOrigin,
    /// The agent's process, and when it started.
    pub process: Option<(u32, u64)>,
    /// The agent it works for (`RINGER_MANAGER`).
    pub manager: Option<String>,
    /// What people call it (`RINGER_AGENT`).
    pub name: Option<String>,
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Where clients keep their settings.
    pub paths: &'a dyn Fn() -> ClientPaths,
    /// What the client reads the answer from, to notice that it has gone.
    pub stdout: Option<BorrowedFd<'a>>,
    /// Called before the hook waits for the person: what would be done at its end must not wait for them.
    pub before_wait: &'a dyn Fn(&HookOutcome),
}

impl HookContext<'_> {
    /// Whether the client reads no more.
    pub(crate) fn is_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(stdout) = self.stdout else { return false };
        let mut waits = [PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
        poll(&mut waits, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// What a hook call did, for its caller.
#[derive(Debug, Default)]
pub struct HookOutcome {
    /// What the client reported besides: limits, models.
    pub observations: Vec<Observation>,
    /// Something was written to the journal, and no hub was woken.
    pub hub_is_missing: bool,
}

/// Why a call failed. The agent does not get the error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The client sent something that is no JSON.
    #[error("the hook's input: {0}")]
    HookInput(#[from] InputError),
    /// The journal could not be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Something else called the hook in the name of an agent that runs.
    #[error("{} runs in another process, which did not call this hook", .0.as_str())]
    Forged(Agent),
    /// The client does not read.
    #[error("the hook's output: {0}")]
    Output(std::io::Error),
}
