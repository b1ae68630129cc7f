//! Why a client gets nothing from the server.

use std::io;

use crate::protocol::MAX_FRAME;

/// Why a command of panes fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// None runs, and none was to be started.
    #[error("no panes are open")]
    NoServer,
    /// It could not be started.
    #[error("the server of panes cannot start: {0}")]
    CannotStart(String),
    /// It does not answer, or what it says makes no sense.
    #[error("the server of panes does not answer: {0}")]
    Silent(io::Error),
    /// It speaks a version of the protocol that this program does not know yet.
    #[error("the server of panes is version {server}, which is newer than this program, version {own}")]
    NewerServer {
        /// The server's program.
        server: String,
        /// This program.
        own: &'static str,
    },
    /// It speaks another version of the protocol.
    #[error("the server of panes is version {server}, this program is version {own}")]
    OtherVersion {
        /// The server's program.
        server: String,
        /// This program.
        own: &'static str,
    },
    /// It refuses to do it.
    #[error("{0}")]
    Refused(String),
    /// It cannot do it now.
    #[error("{0}")]
    Busy(String),
    /// The request is longer than the server takes.
    #[error("that is too long: {0} bytes, and at most {MAX_FRAME} can be sent at once")]
    TooLong(usize),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[source] io::Error),
}
