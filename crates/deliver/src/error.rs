//! Errors of delivery channels.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a notification could not be delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path is not a terminal. Nothing was written.
    #[error("{} is not a terminal", path.display())]
    NotATerminal {
        /// The path.
        path: PathBuf,
    },
    /// The terminal belongs to another user. Nothing was written.
    #[error("{} belongs to another user (uid {owner}, not {own})", path.display())]
    NotOurs {
        /// The terminal.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// The device is now the terminal of another session. Nothing was written.
    #[error("{} now belongs to another session", path.display())]
    OtherSession {
        /// The device.
        path: PathBuf,
    },
    /// The terminal cannot be opened or written; it may have been closed.
    #[error("cannot write to {}: {source}", path.display())]
    Terminal {
        /// The terminal.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The terminal takes no output: stopped with Ctrl-S, or no process reads it.
    #[error("{} accepts no output (Ctrl-Q resumes it); {written} of {of} bytes written", path.display())]
    TerminalStopped {
        /// The terminal.
        path: PathBuf,
        /// Bytes that were written.
        written: usize,
        /// Length of the sequence.
        of: usize,
    },
    /// There is no session bus, so there are no desktop notifications.
    #[error("no session bus: {0}")]
    NoBus(String),
    /// The request queue is full.
    #[error("the desktop is busy: {0} requests are waiting")]
    Busy(usize),
    /// The other side did not answer in time.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// The notification server refused, or there is none.
    #[error("the notification server: {0}")]
    Desktop(String),
    /// The desktop cannot remove popups, as on macOS.
    #[error("this desktop cannot remove a popup")]
    CannotWithdraw,
    /// No installed program can play the sound.
    #[error("no program to play {what}: install {install}")]
    NoPlayer {
        /// The sound.
        what: String,
        /// The programs that could play it.
        install: &'static str,
    },
    /// A program failed.
    #[error("{program}: {why}")]
    Program {
        /// The name of the program.
        program: String,
        /// The exit status and the first line of standard error, or why it could not run.
        why: String,
    },
    /// The address of a webhook cannot be used. It is not repeated here, because it may be a secret itself.
    #[error("the webhook's url is invalid: {0}")]
    Address(&'static str),
    /// The secret of a webhook cannot be used. Its content is never printed.
    #[error("the secret in {}: {why}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The server rejected the request; a retry would not help.
    #[error("{host} rejected it: {why}")]
    Refused {
        /// The host of the webhook.
        host: String,
        /// The status and the first line of the body.
        why: String,
    },
    /// The server is unreachable or busy; a retry may help.
    #[error("{host} did not accept it: {why}")]
    Later {
        /// The host of the webhook.
        host: String,
        /// The reason.
        why: String,
        /// The `Retry-After` of the server.
        after: Option<Duration>,
    },
    /// All attempts failed.
    #[error("gave up after {attempts} attempts: {last}")]
    GaveUp {
        /// The number of attempts.
        attempts: u32,
        /// The error of the last attempt.
        last: Box<Self>,
    },
}
