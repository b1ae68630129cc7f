//! The files in which a client says which sessions run, and what each does. This is data; `crate::sessions` reads them.

use std::path::PathBuf;

use ringer_core::agent::BlockedOn;

/// Where a client writes about its sessions, below the directory of the person's settings.
#[derive(Debug)]
pub(crate) enum SessionFiles {
    /// A small file for each session that runs, which is written anew.
    States {
        /// The directory.
        directory: &'static str,
        /// Reads a file.
        read: ReadSession,
        /// What was said in the sessions.
        transcripts: Transcripts,
    },
    /// A log for each session, which grows by a line for each event, in a directory for each day: `sessions/2026/11/16`.
    Logs {
        /// The directory of the years.
        directory: &'static str,
        /// Reads a line. `None` for one that says nothing about what the session does.
        read: fn(&[u8]) -> Option<SessionStatus>,
    },
}

/// Files `SESSION.jsonl` that grow by a line for each message, in a directory for each project.
#[derive(Debug)]
pub(crate) struct Transcripts {
    /// The directory of those directories.
    pub(crate) directory: &'static str,
    /// Reads a line. `None` for one that is no message of the session's own.
    pub(crate) read: fn(&[u8]) -> Option<TurnEnd>,
}

/// How a turn ended, if a line is the last message in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The agent said this last.
    Complete(String),
    /// With this error.
    Failed(String),
    /// It should have gone on.
    Interrupted,
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
    /// Its directory.
    pub(crate) cwd: Option<String>,
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
    /// It shows a prompt, and needs this.
    Waiting(Option<BlockedOn>),
    /// It waits for the person's next prompt: its turn is complete, or was interrupted.
    Idle,
    /// The person interrupted its turn.
    Interrupted,
    /// Its turn ended with this error.
    Failed(String),
    /// Something that its hooks tell, too.
    Other,
}
