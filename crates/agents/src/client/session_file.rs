//! The files in which a client says which sessions run, and what each does. This is data; `crate::sessions` reads them.

use std::path::PathBuf;

/// Where a client writes about its sessions, below the directory of the person's settings.
#[derive(Debug)]
pub(crate) enum SessionFiles {
    /// A small file for each session that runs, which is written anew.
    States {
        /// The directory.
        directory: &'static str,
        /// Reads a file.
        read: ReadSession,
    },
    /// A log for each session, which grows by a line for each event, in a directory for each day: `sessions/2026/11/16`.
    Logs {
        /// The directory of the years.
        directory: &'static str,
        /// Reads a line. `None` for one that says nothing about what the session does.
        read: fn(&[u8]) -> Option<SessionStatus>,
    },
}

/// Reads the file of a session.
pub(crate) type ReadSession = fn(&[u8]) -> Option<SessionFile>;

/// What a file says of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFile {
    /// The session.
    pub(crate) session_id: String,
    /// The socket that takes messages for it.
    pub(crate) socket: Option<PathBuf>,
    /// What it does.
    pub(crate) status: Option<SessionStatus>,
}

/// What a session does, as its client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionStatus {
    pub(crate) activity: SessionActivity,
    /// Since when, in milliseconds since 1970.
    pub(crate) since_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionActivity {
    /// It is in a turn, and shows no prompt.
    Busy,
    /// It shows a prompt.
    Waiting,
    /// It waits for the person's next prompt.
    Idle,
    /// Its turn ended with this error.
    Failed(String),
    /// Something that its hooks tell, too.
    Other,
}
