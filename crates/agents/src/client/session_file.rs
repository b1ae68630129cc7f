//! The files in which a client says which sessions run, and what each does. This is data; `crate::sessions` reads them.

use std::path::PathBuf;

/// Where a client writes such files.
#[derive(Debug)]
pub(crate) struct SessionFiles {
    /// The directory, in that of the person's settings.
    pub(crate) directory: &'static str,
    /// Reads a file.
    pub(crate) read: fn(&[u8]) -> Option<SessionFile>,
}

/// What a file says of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFile {
    /// The session.
    pub(crate) session_id: String,
    /// The socket that takes messages for it.
    pub(crate) socket: Option<PathBuf>,
    /// What it does, and since when, in milliseconds since 1970.
    pub(crate) status: Option<(SessionStatus, i64)>,
}

/// What a session does, as its client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionStatus {
    /// It is in a turn.
    Busy,
    /// It shows a prompt.
    Waiting,
    /// It waits for the person's next prompt.
    Idle,
}
