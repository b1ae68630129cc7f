//! Why Codex's server cannot be asked or answered.

use std::io;

/// Why Codex's server cannot be asked or answered. Nothing was answered then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodexServerError {
    /// There is no socket, or no process listens on it.
    #[error(
        "Codex was started without its server (--no-daemon), so it can only be answered in its own terminal"
    )]
    NoServer,
    /// The server runs other sessions.
    #[error(
        "Codex's server does not run this session: it has ended, or it was started without that server and can only \
         be answered in its own terminal"
    )]
    OtherSession,
    /// Another user could read what is sent to it.
    #[error("Codex's socket cannot be trusted: {0}")]
    NotOwn(io::Error),
    /// It took too long.
    #[error("Codex's server did not answer in time")]
    Silent,
    /// It said no to a request of Ringer's.
    #[error("Codex's server refused: {0}")]
    Refused(String),
    /// The dialog asks for more than what Ringer shows.
    #[error("Codex asks for more than can be shown here, so it can only be answered in its own terminal")]
    DialogOnly,
    /// The dialog has other answers.
    #[error("Codex does not offer this answer here")]
    NotOffered,
    /// The connection failed.
    #[error("the connection to Codex's server failed: {0}")]
    Connection(#[from] io::Error),
}
