//! What can go wrong with a delivery.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a notification could not be delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path names something that is no terminal. Nothing was written into it.
    #[error("{} is not a terminal", path.display())]
    NotATerminal {
        /// What was named.
        path: PathBuf,
    },
    /// The terminal belongs to another user. Nothing was written into it.
    #[error("{} belongs to another user (uid {owner}, not {own})", path.display())]
    NotOurs {
        /// The terminal.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// The device is the terminal of another session by now. Nothing was written into it.
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
        /// What the system said.
        source: io::Error,
    },
    /// The terminal takes no output: stopped with Ctrl-S, or no process reads it.
    #[error("{} accepts no output (Ctrl-Q resumes it); {written} of {of} bytes written", path.display())]
    TerminalStopped {
        /// The terminal.
        path: PathBuf,
        /// How much it took.
        written: usize,
        /// How much there was.
        of: usize,
    },
    /// There is no session bus, so there are no desktop notifications.
    #[error("no session bus: {0}")]
    NoBus(String),
    /// The queue is full; nothing was queued.
    #[error("the desktop is busy: {0} requests are waiting")]
    Busy(usize),
    /// The other side did not answer in time.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// The notification server refused, or there is none.
    #[error("the notification server: {0}")]
    Desktop(String),
    /// The desktop keeps what it shows, as that of macOS does.
    #[error("this desktop cannot remove a popup")]
    CannotWithdraw,
    /// No program is installed that could play a sound.
    #[error("no program to play {what}: install {install}")]
    NoPlayer {
        /// What was to be played.
        what: String,
        /// What would help.
        install: &'static str,
    },
    /// A program failed, in words.
    #[error("{program}: {why}")]
    Program {
        /// Which.
        program: String,
        /// Exit status and what it complained about, or why it could not run.
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
        /// Why not.
        why: String,
    },
    /// The webhook does not want it; trying again would not help.
    #[error("{host} rejected it: {why}")]
    Refused {
        /// Who.
        host: String,
        /// The status, and the first line of what it said.
        why: String,
    },
    /// The webhook cannot take it now; trying again may help.
    #[error("{host} did not accept it: {why}")]
    Later {
        /// Who.
        host: String,
        /// What happened.
        why: String,
        /// When to come back, if it said so.
        after: Option<Duration>,
    },
    /// The webhook did not take it, and it was tried often enough.
    #[error("gave up after {attempts} attempts: {last}")]
    GaveUp {
        /// How often it was tried.
        attempts: u32,
        /// What happened at last.
        last: Box<Self>,
    },
}
