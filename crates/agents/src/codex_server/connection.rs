//! A connection to Codex's server: JSON messages in a WebSocket over a Unix socket, with a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use ringer_platform::owned;
use serde_json::Value;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error as WebSocketError, HandshakeError, Message, WebSocket};

/// Maximum message size, in bytes. What Codex sends for a thread without its turns is far smaller.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A connection. Dropping it closes the WebSocket.
pub(super) struct Connection {
    socket: WebSocket<DeadlineStream>,
}

impl Connection {
    /// Connects to a socket, which this user must own.
    pub(super) fn open(path: &Path, deadline: Instant) -> Result<Self, CodexServerError> {
        let stream = match owned::connect(path) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Err(CodexServerError::NoServer);
            }
            // An error without an OS code comes from the ownership check.
            Err(error) if error.raw_os_error().is_none() => {
                return Err(CodexServerError::UntrustedSocket(error));
            }
            // The backlog of the socket is full.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(CodexServerError::Timeout),
            Err(error) => return Err(error.into()),
        };
        stream.set_nonblocking(false)?;
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let stream = DeadlineStream { stream, deadline };
        let opened = tungstenite::client::client_with_config("ws://localhost/", stream, Some(config));
        match opened {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(HandshakeError::Interrupted(_)) => Err(CodexServerError::Timeout),
            Err(HandshakeError::Failure(error)) => Err(failure(error)),
        }
    }

    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.socket.get_mut().deadline = deadline;
    }

    pub(super) fn send(&mut self, messages: &[Value]) -> Result<(), CodexServerError> {
        for message in messages {
            self.socket.write(Message::text(message.to_string())).map_err(failure)?;
        }
        self.socket.flush().map_err(failure)
    }

    /// Reads the next message. Messages that are not JSON are skipped.
    pub(super) fn receive(&mut self) -> Result<Value, CodexServerError> {
        loop {
            if let Message::Text(text) = self.socket.read().map_err(failure)?
                && let Ok(message) = serde_json::from_str(&text)
            {
                return Ok(message);
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The connection ends either way.
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

fn failure(error: WebSocketError) -> CodexServerError {
    match error {
        WebSocketError::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            CodexServerError::Timeout
        }
        WebSocketError::Io(error) => CodexServerError::Connection(error),
        error => CodexServerError::Connection(io::Error::other(error.to_string())),
    }
}

/// A stream that fails after its deadline, however slowly the peer sends.
struct DeadlineStream {
    stream: UnixStream,
    deadline: Instant,
}

impl DeadlineStream {
    /// Sets the socket timeout to the time left. Fails after the deadline.
    fn limit(&self, set: fn(&UnixStream, Option<std::time::Duration>) -> io::Result<()>) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        set(&self.stream, Some(left))
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit(UnixStream::set_read_timeout)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit(UnixStream::set_write_timeout)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Why Codex's server cannot be queried or answered. The prompt was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodexServerError {
    /// There is no socket, or no process listens on it.
    #[error(
        "Codex was started without its server (--no-daemon), so it can only be answered in its own terminal"
    )]
    NoServer,
    /// The server does not run this session.
    #[error(
        "Codex's server does not run this session: it has ended, or it was started without that server and can only \
         be answered in its own terminal"
    )]
    OtherSession,
    /// Another user could read what is sent.
    #[error("Codex's socket cannot be trusted: {0}")]
    UntrustedSocket(io::Error),
    /// The deadline passed.
    #[error("Codex's server did not answer in time")]
    Timeout,
    /// The server rejected a request.
    #[error("Codex's server refused: {0}")]
    Refused(String),
    /// The dialog asks for more than Ringer shows.
    #[error("Codex asks for more than can be shown here, so it can only be answered in its own terminal")]
    DialogOnly,
    /// The dialog does not offer this answer.
    #[error("Codex does not offer this answer here")]
    NotOffered,
    /// The connection failed.
    #[error("the connection to Codex's server failed: {0}")]
    Connection(#[from] io::Error),
}
