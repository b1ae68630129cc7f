//! The other end of the socket: what commands, and hosts that run as threads of the hub, use. No runtime, and never for long.

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
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::discovery::{HubAddress, check_path, usual_sockets};
use crate::protocol::{ApiError, MAX_LINE, Response};

/// How long a hub may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// How long [`tell`] may take in all, whatever the hub does. A hook waits as long for the journal's lock.
const TELL_WITHIN: Duration = Duration::from_millis(50);

/// Sends a request to the hub of a home, and does not wait for its answer: for hooks, which must not make an agent wait
/// for a hub that is stopped or busy. What was sent is read when the hub goes on.
pub fn tell(home: &Home, method: &str, params: &Value) -> Result<(), HubClientError> {
    let stream = reach(home, owned::connect)?;
    let line = request(method, params);
    write_until(&stream, line.as_bytes(), Instant::now() + TELL_WITHIN).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => HubClientError::Late { waited: TELL_WITHIN },
        _ => HubClientError::Silent(error),
    })
}

/// Writes everything to a stream that does not block.
fn write_until(mut stream: &UnixStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            // Its buffer is full of what the other side has not read.
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

/// Connects to the hub of a home: at the socket that `hub.json` names, or, where that file is damaged, at one of those
/// where a hub of this home makes its own.
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

/// Connects to a socket, if no other user could have put it there and this user owns the process behind it.
fn try_socket(
    home: &Home,
    socket: &Path,
    connect: impl Fn(&Path) -> io::Result<UnixStream>,
) -> Result<UnixStream, HubClientError> {
    match check_path(home, socket) {
        Ok(()) => {}
        // The directory went with the hub, or with the session.
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(HubClientError::NoHub),
        Err(error) => return Err(HubClientError::UnsafePath(error)),
    }
    let stream = connect(socket).map_err(|_| HubClientError::NoHub)?;
    // Before anything is sent to it or believed.
    owned::check_peer(&stream).map_err(HubClientError::UnsafePath)?;
    Ok(stream)
}

/// Where no hub of this user runs, `hub.json` is left from an earlier one, and a new hub takes a safe place.
fn suspicious(home: &Home, error: HubClientError) -> HubClientError {
    let is_unsafe = matches!(error, HubClientError::UnsafePath(_));
    if is_unsafe && HubLock::owner(home).is_none() { HubClientError::NoHub } else { error }
}

/// A request, as a line.
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

/// The way to the hub of a connection that another thread reads.
#[derive(Debug)]
pub struct HubWriter {
    stream: UnixStream,
}

impl Drop for HubWriter {
    /// Ends the connection: the side that reads waits without a limit and would keep it open.
    fn drop(&mut self) {
        // The hub may have ended it.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl HubWriter {
    /// Asks; the answer comes to the reader.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<(), HubClientError> {
        self.stream.write_all(request(method, params).as_bytes()).map_err(HubClientError::of)
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubClientError {
    /// No hub runs.
    #[error("the hub is not running")]
    NoHub,
    /// It does not answer in time.
    #[error("the hub took longer than {} s to answer", waited.as_secs_f64())]
    Late {
        /// How long it was waited for.
        waited: Duration,
    },
    /// It does not answer.
    #[error("the hub does not answer: {0}")]
    Silent(io::Error),
    /// Another user made the socket, could have made it, or listens there.
    #[error("the hub's socket cannot be trusted: {0}; nothing was sent to it")]
    UnsafePath(io::Error),
    /// It answered something else.
    #[error("the hub sent an invalid answer")]
    Nonsense,
    /// It refused.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

impl HubClientError {
    fn of(error: io::Error) -> Self {
        match error.kind() {
            // The system has either word for the end of a socket's time.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late { waited: ANSWER_DEADLINE },
            // It was killed or ended after we connected: that is no hub, and no fault of one.
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

    /// Waits for each answer only so long.
    pub fn answer_within(self, deadline: Duration) -> Result<Self, HubClientError> {
        self.stream.get_ref().set_read_timeout(Some(deadline)).map_err(HubClientError::Silent)?;
        Ok(self)
    }

    /// About how many older messages the last answer did not take into account: the hub was still reading them.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, HubClientError> {
        let request = request(method, params);
        self.stream.get_mut().write_all(request.as_bytes()).map_err(HubClientError::of)?;
        let mut line = self.next_line()?.ok_or(HubClientError::NoHub)?;
        // A host gets orders between answers.
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

    /// The next line of a subscription. `None` when the hub ended it.
    pub fn next_line(&mut self) -> Result<Option<String>, HubClientError> {
        let mut line = Vec::new();
        // Answers may be longer than requests: a list holds many notifications.
        let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_mul(64);
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut line).map_err(HubClientError::of)?;
        if read == 0 {
            return Ok(None);
        }
        String::from_utf8(line).map(Some).map_err(|_| HubClientError::Nonsense)
    }

    /// The two ways of the connection, for a host: its orders are waited for without a limit.
    pub fn split(mut self) -> Result<(Self, HubWriter), HubClientError> {
        self.wait_for_ever()?;
        let stream = self.stream.get_ref().try_clone().map_err(HubClientError::Silent)?;
        Ok((self, HubWriter { stream }))
    }

    /// From now on lines are waited for without a limit.
    pub fn wait_for_ever(&mut self) -> Result<(), HubClientError> {
        self.stream.get_ref().set_read_timeout(None).map_err(HubClientError::Silent)
    }
}

/// How long a hub may take until it can be connected to, and how often that is tried.
const HUB_STARTS: (u32, Duration) = (100, Duration::from_millis(50));
/// Notifications that are looked through for surfaces when a hub begins.
const MAX_LISTED: usize = 1000;

/// Waits until the hub takes connections: its threads are there before its socket is.
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

/// The surfaces from which the newest notifications came, as soon as the hub takes connections.
pub fn listed_surfaces(home: &Home) -> BTreeSet<SurfaceId> {
    let list = connect_to_starting(home)
        .map(|mut hub| hub.call("notification.list", &json!({ "limit": MAX_LISTED })));
    let rows = list.and_then(Result::ok).and_then(|list| list.as_array().cloned()).unwrap_or_default();
    rows.iter().filter_map(|row| row["surface"].as_str().map(SurfaceId::new)).collect()
}

/// The way to the hub.
#[derive(Debug)]
pub struct HostConnection {
    writer: HubWriter,
}

impl HostConnection {
    /// Attaches a host. `order` is called for what the hub orders, as far as it can be read as `Order`, on another thread; with
    /// `None` when the connection has ended.
    pub fn attach<Order: DeserializeOwned>(
        home: &Home,
        host: &Value,
        order: impl Fn(Option<Order>) + Send + 'static,
    ) -> Result<Self, HubClientError> {
        let mut client = HubClient::connect(home)?;
        client.call("host.attach", host)?;
        let (mut reader, writer) = client.split()?;
        thread::spawn(move || {
            // Answers and orders for other kinds of hosts are no orders.
            while let Ok(Some(line)) = reader.next_line() {
                if let Ok(read) = serde_json::from_str(&line) {
                    order(Some(read));
                }
            }
            order(None);
        });
        Ok(Self { writer })
    }

    /// Tells the hub something.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<(), HubClientError> {
        self.writer.send(method, params)
    }
}
