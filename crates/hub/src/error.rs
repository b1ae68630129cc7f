//! The reasons why a hub cannot run.

use ringer_journal::Error as JournalError;

/// The reason why a hub could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The home already has a hub.
    #[error("the hub is already running{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Running {
        /// The process id of that hub, if known.
        pid: Option<u32>,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The socket cannot be created.
    #[error("the hub's socket cannot be made: {0}")]
    Socket(std::io::Error),
    /// The loop panicked, a bug in Ringer. What it had not written is beyond its cursor, so the next hub reads it again.
    #[error("the hub stopped because of an internal error: {0}")]
    Panicked(String),
    /// The machine has no threads or descriptors left.
    #[error("the hub cannot start: {0}")]
    Runtime(std::io::Error),
}
