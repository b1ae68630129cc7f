//! The other end of the socket: what commands use. No runtime, and never for long.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ringer_journal::Home;
use serde_json::{Value, json};

use crate::presence::Presence;
use crate::protocol::{MAX_LINE, Refusal, Response};

/// How long a hub may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// A connection to the hub.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    version: String,
    behind: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody is there.
    #[error("no hub runs")]
    NoHub,
    /// It does not answer in time.
    #[error("the hub took longer than {} s to answer", waited.as_secs())]
    Late {
        /// How long it was waited for.
        waited: Duration,
    },
    /// It does not answer.
    #[error("the hub does not answer: {0}")]
    Silent(std::io::Error),
    /// It answered something else.
    #[error("the hub answered something that makes no sense")]
    Nonsense,
    /// It refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl ClientError {
    fn of(error: std::io::Error) -> Self {
        match error.kind() {
            // The system has either word for the end of a socket's time.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late { waited: ANSWER_DEADLINE },
            _ => Self::Silent(error),
        }
    }
}

impl Client {
    /// Connects to the hub of a home.
    pub fn connect(home: &Home) -> Result<Self, ClientError> {
        let presence = Presence::read(home).ok_or(ClientError::NoHub)?;
        let stream = UnixStream::connect(&presence.socket).map_err(|_| ClientError::NoHub)?;
        let limited = stream
            .set_read_timeout(Some(ANSWER_DEADLINE))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_DEADLINE)));
        limited.map_err(ClientError::Silent)?;
        Ok(Self { stream: BufReader::new(stream), version: presence.version, behind: 0 })
    }

    /// The hub's version: another one than ours after an upgrade.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// About how many older messages the last answer did not take into account: the hub was still reading them.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        let mut request = json!({ "id": 1, "method": method, "params": params }).to_string();
        request.push('\n');
        self.stream.get_mut().write_all(request.as_bytes()).map_err(ClientError::of)?;
        let line = self.next_line()?.ok_or(ClientError::NoHub)?;
        let response: Response = serde_json::from_str(&line).map_err(|_| ClientError::Nonsense)?;
        self.behind = response.behind;
        match (response.result, response.error) {
            (Some(result), _) => Ok(result),
            (None, Some(refusal)) => Err(refusal.into()),
            (None, None) => Ok(Value::Null),
        }
    }

    /// The next line of a subscription. `None` when the hub ended it.
    pub fn next_line(&mut self) -> Result<Option<String>, ClientError> {
        let mut line = Vec::new();
        // Answers may be longer than requests: a list holds many notifications.
        let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_mul(64);
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut line).map_err(ClientError::of)?;
        if read == 0 {
            return Ok(None);
        }
        String::from_utf8(line).map(Some).map_err(|_| ClientError::Nonsense)
    }

    /// From now on lines are waited for without a limit.
    pub fn wait_for_ever(&mut self) -> Result<(), ClientError> {
        self.stream.get_ref().set_read_timeout(None).map_err(ClientError::Silent)
    }
}
