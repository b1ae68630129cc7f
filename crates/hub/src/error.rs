//! Why a hub could not run.

use ringer_journal::Error as JournalError;

/// Why a hub could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// There is one already.
    #[error("the hub is already running{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Running {
        /// Its process, where that is known.
        pid: Option<u32>,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The socket cannot be made.
    #[error("the hub's socket cannot be made: {0}")]
    Socket(std::io::Error),
    /// The loop panicked: an error in Ringer. What it had not written down is behind its cursor, and the next hub takes it.
    #[error("the hub stopped because of an internal error: {0}")]
    Panicked(String),
    /// The machine has no threads or descriptors left.
    #[error("the hub cannot start: {0}")]
    Runtime(std::io::Error),
}
