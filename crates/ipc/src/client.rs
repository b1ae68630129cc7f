//! The client of the hub's socket, for commands and for hosts that run as threads of the hub. Uses no runtime and short
//! timeouts.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_journal::{Home, HubLock};
use ringer_platform::owned;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::discovery::{HubAddress, check_path, usual_sockets};
use crate::protocol::{ApiError, MAX_LINE, Response};

/// How long a hub may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The longest time that [`tell`] takes in total. A hook waits as long for the journal's lock.
const TELL_WITHIN: Duration = Duration::from_millis(50);

/// Sends a request to the hub of a home without waiting for the answer. For hooks, which must not make an agent wait for a hub
/// that is stopped or busy. Such a hub reads the request when it resumes.
pub fn tell(home: &Home, method: &str, params: &Value) -> Result<(), HubClientError> {
    let stream = reach(home, owned::connect)?;
    let line = request(method, params);
    write_until(&stream, line.as_bytes(), Instant::now() + TELL_WITHIN).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => HubClientError::Late { waited: TELL_WITHIN },
        _ => HubClientError::Silent(error),
    })
}

/// Writes everything to a non-blocking stream.
fn write_until(mut stream: &UnixStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            // The buffer is full: the peer is not reading.
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_to_write(stream, end)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_to_write(stream: &UnixStream, end: Instant) -> io::Result<()> {
    let rest = Timespec::try_from(end.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&rest)) {
        Ok(0) => Err(ErrorKind::TimedOut.into()),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the hub of a home: at the socket named in `hub.json`, or, if no hub is found that way while one is running, at
/// the usual places of this home's sockets.
fn reach(
    home: &Home,
    connect: impl Fn(&Path) -> io::Result<UnixStream>,
) -> Result<UnixStream, HubClientError> {
    let named = HubAddress::read(home).map_or(Err(HubClientError::NoHub), |address| {
        let stream = try_socket(home, &address.socket, &connect);
        stream.map_err(|error| suspicious(home, error))
    });
    if !matches!(named, Err(HubClientError::NoHub)) || HubLock::owner(home).is_none() {
        return named;
    }
    let usual = usual_sockets(home);
    usual.iter().find_map(|socket| try_socket(home, socket, &connect).ok()).ok_or(HubClientError::NoHub)
}

/// Connects to a socket. Fails if another user could have created it, or owns the process behind it.
fn try_socket(
    home: &Home,
    socket: &Path,
    connect: impl Fn(&Path) -> io::Result<UnixStream>,
) -> Result<UnixStream, HubClientError> {
    match check_path(home, socket) {
        Ok(()) => {}
        // The directory was removed with the hub, or at logout.
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(HubClientError::NoHub),
        Err(error) => return Err(HubClientError::UnsafePath(error)),
    }
    let stream = connect(socket).map_err(|_| HubClientError::NoHub)?;
    // Check the peer before sending or believing anything.
    owned::check_peer(&stream).map_err(HubClientError::UnsafePath)?;
    Ok(stream)
}

/// Turns an unsafe path into `NoHub` if no hub of this user is running: then `hub.json` is left over from an earlier hub, and a
/// new hub will choose a safe place.
fn suspicious(home: &Home, error: HubClientError) -> HubClientError {
    let is_unsafe = matches!(error, HubClientError::UnsafePath(_));
    if is_unsafe && HubLock::owner(home).is_none() { HubClientError::NoHub } else { error }
}

/// Returns a request as one line of JSON.
fn request(method: &str, params: &Value) -> String {
    let mut request = json!({ "id": 1, "method": method, "params": params }).to_string();
    request.push('\n');
    request
}

/// A connection to the hub.
#[derive(Debug)]
pub struct HubClient {
    stream: BufReader<UnixStream>,
    behind: u64,
}

/// The write half of a hub connection, whose read half belongs to another thread.
#[derive(Debug)]
pub struct HubWriter {
    stream: UnixStream,
}

impl Drop for HubWriter {
    /// Closes the connection: the read half waits without a limit and would keep it open.
    fn drop(&mut self) {
        // Fails if the hub has already closed it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl HubWriter {
    /// Sends a request. The reader gets the answer.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<(), HubClientError> {
        self.stream.write_all(request(method, params).as_bytes()).map_err(HubClientError::of)
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubClientError {
    /// No hub is running.
    #[error("the hub is not running")]
    NoHub,
    /// The hub did not answer in time.
    #[error("the hub took longer than {} s to answer", waited.as_secs_f64())]
    Late {
        /// The time that was waited.
        waited: Duration,
    },
    /// Reading or writing failed.
    #[error("the hub does not answer: {0}")]
    Silent(io::Error),
    /// Another user created the socket, could have created it, or listens on it.
    #[error("the hub's socket cannot be trusted: {0}; nothing was sent to it")]
    UnsafePath(io::Error),
    /// The answer is not valid.
    #[error("the hub sent an invalid answer")]
    Nonsense,
    /// The hub refused the request.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

impl HubClientError {
    fn of(error: io::Error) -> Self {
        match error.kind() {
            // Systems report a socket timeout as either kind.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late { waited: ANSWER_DEADLINE },
            // The hub exited or was killed after we connected, which is the same as no hub.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::NoHub,
            _ => Self::Silent(error),
        }
    }
}

impl HubClient {
    /// Connects to the hub of a home.
    pub fn connect(home: &Home) -> Result<Self, HubClientError> {
        let stream = reach(home, |socket| UnixStream::connect(socket))?;
        let limited = stream
            .set_read_timeout(Some(ANSWER_DEADLINE))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_DEADLINE)));
        limited.map_err(HubClientError::Silent)?;
        Ok(Self { stream: BufReader::new(stream), behind: 0 })
    }

    /// Sets the timeout of each answer.
    pub fn answer_within(self, deadline: Duration) -> Result<Self, HubClientError> {
        self.stream.get_ref().set_read_timeout(Some(deadline)).map_err(HubClientError::Silent)?;
        Ok(self)
    }

    /// Returns about how many older messages the last answer does not include, because the hub was still reading them.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Sends a request and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, HubClientError> {
        let request = request(method, params);
        self.stream.get_mut().write_all(request.as_bytes()).map_err(HubClientError::of)?;
        let mut line = self.next_line()?.ok_or(HubClientError::NoHub)?;
        // A host may receive orders before the answer.
        while line.starts_with("{\"event\":") {
            line = self.next_line()?.ok_or(HubClientError::NoHub)?;
        }
        let response: Response = serde_json::from_str(&line).map_err(|_| HubClientError::Nonsense)?;
        self.behind = response.behind;
        match (response.result, response.error) {
            (Some(result), _) => Ok(result),
            (None, Some(refusal)) => Err(refusal.into()),
            (None, None) => Ok(Value::Null),
        }
    }

    /// Reads the next line of a subscription. Returns `None` if the hub closed it.
    pub fn next_line(&mut self) -> Result<Option<String>, HubClientError> {
        let mut line = Vec::new();
        // Answers may be longer than requests: a list contains many notifications.
        let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_mul(64);
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut line).map_err(HubClientError::of)?;
        if read == 0 {
            return Ok(None);
        }
        String::from_utf8(line).map(Some).map_err(|_| HubClientError::Nonsense)
    }

    /// Splits the connection into a read and a write half, for a host. The read half waits for orders without a limit.
    pub fn split(mut self) -> Result<(Self, HubWriter), HubClientError> {
        self.wait_for_ever()?;
        let stream = self.stream.get_ref().try_clone().map_err(HubClientError::Silent)?;
        Ok((self, HubWriter { stream }))
    }

    /// Removes the read timeout.
    pub fn wait_for_ever(&mut self) -> Result<(), HubClientError> {
        self.stream.get_ref().set_read_timeout(None).map_err(HubClientError::Silent)
    }
}

/// How often to try to connect to a starting hub, and the pause between two attempts.
const HUB_STARTS: (u32, Duration) = (100, Duration::from_millis(50));
/// The most notifications to search for surfaces when a hub starts.
const MAX_LISTED: usize = 1000;

/// Connects to a hub that is starting. Hosts need this because they start as its threads before its socket is ready.
pub fn connect_to_starting(home: &Home) -> Option<HubClient> {
    let (tries, pause) = HUB_STARTS;
    (0..tries).find_map(|_| {
        let client = HubClient::connect(home).ok();
        if client.is_none() {
            thread::sleep(pause);
        }
        client
    })
}

/// Waits until the hub accepts connections, and returns the surfaces of its newest notifications.
pub fn listed_surfaces(home: &Home) -> BTreeSet<SurfaceId> {
    let list = connect_to_starting(home)
        .map(|mut hub| hub.call("notification.list", &json!({ "limit": MAX_LISTED })));
    let rows = list.and_then(Result::ok).and_then(|list| list.as_array().cloned()).unwrap_or_default();
    rows.iter().filter_map(|row| row["surface"].as_str().map(SurfaceId::new)).collect()
}
