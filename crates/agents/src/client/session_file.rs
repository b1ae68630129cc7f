//! The files in which a client publishes its sessions and what they do. `crate::sessions` reads them.

use std::path::PathBuf;

use ringer_core::agent::BlockedOn;

/// The form of a client's session files, below the person's settings directory.
#[derive(Debug)]
pub(crate) enum SessionFiles {
    /// A small file for each running session, which is rewritten on every change.
    StatusFiles {
        directory: &'static str,
        read: ReadSession,
        /// The messages of the sessions.
        transcripts: Transcripts,
    },
    /// A log for each session with a line for each event, in a directory for each day: `sessions/2026/11/16`.
    Logs {
        /// The directory that contains the years.
        directory: &'static str,
        /// Reads a line. `None` if it does not change what the session does.
        read: fn(&[u8]) -> Option<SessionStatus>,
    },
}

/// Files `SESSION.jsonl` with a line for each message, in a directory for each project.
#[derive(Debug)]
pub(crate) struct Transcripts {
    /// The directory that contains the projects.
    pub(crate) directory: &'static str,
    /// Reads a line. `None` if it is not a message of the session itself.
    pub(crate) read: fn(&[u8]) -> Option<TurnEnd>,
}

/// How a turn ended if this line is its last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The turn completed with this message.
    Complete(String),
    /// The turn failed with this error.
    Failed(String),
    /// The turn should have continued.
    Interrupted,
}

/// Reads a session file.
pub(crate) type ReadSession = fn(&[u8]) -> Option<SessionFile>;

/// The content of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFile {
    pub(crate) session_id: String,
    /// The socket that accepts messages for the session.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) cwd: Option<String>,
    pub(crate) status: Option<SessionStatus>,
}

/// What a session does, according to its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionStatus {
    pub(crate) activity: SessionActivity,
    /// Start of the activity, in milliseconds since 1970.
    pub(crate) since_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionActivity {
    /// A turn is running, and no prompt is shown.
    Busy,
    /// A prompt is shown that needs this.
    Waiting(Option<BlockedOn>),
    /// The session waits for its next prompt: its turn completed or was interrupted.
    Idle,
    /// The person interrupted the turn.
    Interrupted,
    /// The turn ended with this error.
    Failed(String),
    /// Something that hooks report as well.
    Other,
}
