//! The differences between clients. A new client needs a file with an [`Adapter`], a [`Client`](super::Client), an entry in
//! `Client::ALL` and a line in `adapter()`.

use std::path::PathBuf;

use ringer_core::agent::BlockedOn;
use ringer_core::conversation::Injection;
use ringer_core::message::SessionNonce;

use super::input::HookInput;
use super::prompt::PromptHooks;
use super::reply::HookReply;
use super::report::{HookReport, LogDetail};
use super::settings::ClientSettings;

/// One client: its properties, and the functions that read and answer its hooks.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about one client, independent of the others"
)]
pub(crate) struct Adapter {
    /// The name in commands and settings.
    pub(super) name: &'static str,
    /// The name as its makers write it.
    pub(crate) display_name: &'static str,
    /// The names of its programs. Each is accepted as the name of the client.
    pub(super) programs: &'static [&'static str],
    /// Maximum characters of context per hook, if known.
    pub(super) context_limit: Option<usize>,
    /// The beginning of a session's id is random. Otherwise its end is: Codex and opencode ids begin with the time, so that two
    /// sessions of one minute would get the same agent id.
    pub(super) session_id_begins_randomly: bool,
    /// It may start a new session in the same terminal without a hook that ends the old one.
    pub(crate) leaves_sessions_silently: bool,
    /// Its sessions go on in a server when their windows close.
    pub(super) outlives_window: bool,
    /// The parent process of a hook is the session's. Its end is then the end of the agent.
    pub(super) calls_hooks_itself: bool,
    /// Reads a hook's input. An unknown event gives an empty report.
    pub(super) read: fn(event: &str, input: &HookInput) -> HookReport,
    /// The text for the hook's standard output; `None` if nothing is to be written.
    pub(super) answer: fn(event: &str, reply: &HookReply) -> Option<String>,
    /// Where it publishes its sessions, if it does.
    pub(crate) sessions: Option<SessionFiles>,
    /// How its hooks report dialogs, if these can be answered from elsewhere.
    pub(crate) prompts: Option<PromptHooks>,
    pub(crate) push: PushMethod,
    /// The settings that `ringer setup` edits.
    pub(crate) settings: ClientSettings,
}

/// How a message is pushed to an idle session. `crate::push` acts on it.
#[derive(Debug)]
pub(crate) enum PushMethod {
    /// It takes none, for this reason.
    Refused(&'static str),
    /// A hook waits while the session is idle, and delivers messages (`crate::waiting_hook`).
    WaitingHook,
    /// A line is written to the session's Unix socket. The client may drop it; its next prompts name the messages that arrived.
    SessionSocket {
        /// Formats the line.
        line: fn(injections: &[Injection], nonce: Option<&SessionNonce>) -> String,
    },
    /// A program of the client is run. Exit code 0 means that it took the message.
    Command {
        program: &'static str,
        /// Builds its arguments from the session's id and the text. The first is the subcommand.
        arguments: for<'a> fn(session_id: &'a str, text: &'a str) -> Vec<&'a str>,
    },
}

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
    /// A log for each session with a line for each event.
    Logs {
        /// The directory of the logs.
        directory: &'static str,
        place: LogPlace,
        /// Reads what the session does from the end of its log.
        read: fn(tail: &[u8]) -> Option<SessionStatus>,
        /// Adds to a hook's report what only the log has, if the hooks lack something.
        add_detail: Option<AddLogDetail>,
    },
}

/// Where the log of a session is, below the directory of the logs.
#[derive(Debug)]
pub(crate) enum LogPlace {
    /// At most three directories below, in a file whose name ends with what this returns for the session's id.
    NameEnd(fn(&str) -> String),
    /// In the file of this name, in a directory that is named after the session.
    SessionDirectory(&'static str),
}

/// Adds a detail from the end of a session's log to a hook's report. Returns false if the log does not have it yet.
pub(crate) type AddLogDetail = fn(report: &mut HookReport, detail: LogDetail, tail: &[u8]) -> bool;

/// Reads the last line of a log that says what the session does.
pub(super) fn last_status(tail: &[u8], read: fn(&[u8]) -> Option<SessionStatus>) -> Option<SessionStatus> {
    tail.rsplit(|byte| *byte == b'\n').find_map(read)
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
