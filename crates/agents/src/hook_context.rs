//! The environment of a hook call, its outcome and its errors.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use ringer_core::message::{Agent, MessageOrigin};
use ringer_core::toast::Observation;
use ringer_journal::{Error as JournalError, Home};

use crate::client::{ClientPaths, InputError};

/// The environment of a hook call. Values that are expensive to get are functions, called only when needed.
pub struct HookContext<'a> {
    /// Ringer's home.
    pub home: Home,
    /// Reads the monotonic clock.
    pub clock: &'a dyn Fn() -> Duration,
    /// Finds the terminal and surface of the agent.
    pub origin: &'a dyn Fn() -> MessageOrigin,
    /// The agent's process: its pid and start time.
    pub process: Option<(u32, u64)>,
    /// The agent that this one works for (`RINGER_MANAGER`).
    pub manager: Option<String>,
    /// The agent's name (`RINGER_AGENT`).
    pub name: Option<String>,
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Where clients keep their settings.
    pub paths: &'a dyn Fn() -> ClientPaths,
    /// The pipe to the client, watched to notice that the client has closed it.
    pub stdout: Option<BorrowedFd<'a>>,
    /// Called before the hook waits for the person. Work that the caller does at the end of other hooks is done here, so that it
    /// does not wait too.
    pub before_wait: &'a dyn Fn(&HookOutcome),
}

impl HookContext<'_> {
    /// Returns true if the client has closed its end of the pipe.
    pub(crate) fn is_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(stdout) = self.stdout else { return false };
        let mut waits = [PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
        poll(&mut waits, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// The result of a hook call.
#[derive(Debug, Default)]
pub struct HookOutcome {
    /// What the client reported about itself: limits, models.
    pub observations: Vec<Observation>,
    /// The journal was written, and no hub was woken.
    pub hub_is_missing: bool,
}

/// Why a call failed. The error is not shown to the agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The input is not valid JSON.
    #[error("the hook's input: {0}")]
    HookInput(#[from] InputError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A process other than the running agent called the hook with the agent's session id.
    #[error("{} runs in another process, which did not call this hook", .0.as_str())]
    Forged(Agent),
    /// The output could not be written.
    #[error("the hook's output: {0}")]
    Output(std::io::Error),
}
