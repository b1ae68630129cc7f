//! How a message reaches a client that is idle. This is data; `crate::push` acts on it.

/// How a message is pushed to an idle session of a client.
#[derive(Debug)]
pub(crate) enum PushMethod {
    /// It takes none; why, in words.
    Refused(&'static str),
    /// A hook of the client waits while the session is idle, and takes what comes (`crate::idle_hook`).
    WaitingHook,
    /// A line is written to the Unix socket of the session. The client may drop it; its next prompts name the messages
    /// that arrived.
    SessionSocket {
        /// The line, for the ids of the messages and their text.
        line: fn(ids: &str, text: &str) -> String,
    },
    /// A program of the client is run; it has taken the message when it exits with 0.
    Command {
        program: &'static str,
        /// Its arguments, for the session's id and the text. The first names the subcommand.
        arguments: for<'a> fn(session_id: &'a str, text: &'a str) -> Vec<&'a str>,
    },
}
