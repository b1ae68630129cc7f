//! The server of the socket: access control, rate limits, and deadlines so that the hub waits for no client.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ringer_ipc::{ApiError, MAX_LINE, Response, read_request};
use ringer_platform::FIRST_FRAME_WITHIN;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::delivery::session_bus::SessionDesktop;
use crate::hosts::protocol::{ConnectionId, HOST_PROTOCOL};
use crate::message::{Answered, Input, LoopEvent, Reply, Request};
use crate::socket::lines::{Lines, TooLong};
use crate::socket::slots::{ConnectionSlot, ConnectionSlots};
use crate::socket::subscriptions::Subscription;
use crate::view;

/// The most ordinary connections. One more takes the slot of the oldest that has not sent a whole line. If all have, it may only
/// send the requests in `CONTROL`.
pub const MAX_CONNECTIONS: usize = 256;
/// The most control connections beyond the ordinary ones, so that a hub can always be inspected and stopped. Each is closed after
/// one answer, so a few are enough.
const MAX_CONTROL: usize = 16;
/// The methods that control connections may call.
const CONTROL: [&str; 3] = ["hub.stop", "hub.status", "ping"];
const TOO_MANY: &str = "too many connections";
/// Deadline for a client to accept an answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// How long a connection may be silent. Half a line counts as silence.
const IDLE_DEADLINE: Duration = Duration::from_mins(5);
/// Requests that a connection may send at once, and how many more each second.
const BURST: f64 = 1000.0;
const PER_SECOND: f64 = 500.0;
/// Interval of the heartbeat to subscribers.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Listens on a socket that only its owner can connect to.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    // This process holds the hub's lock, so the hub that made this socket is dead.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Decides which requests on the hub's socket are reserved for the person.
pub trait RequestGuard: fmt::Debug + Send + Sync {
    /// Returns true if the sender of this request has to be checked.
    fn is_reserved(&self, method: &str) -> bool;

    /// Returns the reason if a process may not send a request. `pid` is `None` if the process is not visible in the hub's PID
    /// namespace. May take seconds: the hub calls it on a separate thread.
    fn check(&self, pid: Option<u32>, method: &str, params: &Value) -> Result<(), String>;
}

/// Accepts connections, and counts the open ones.
pub(crate) async fn serve(
    listener: UnixListener,
    inputs: mpsc::Sender<Input>,
    open: Arc<AtomicUsize>,
    desktop: SessionDesktop,
    guard: Option<Arc<dyn RequestGuard>>,
) {
    let own = rustix::process::geteuid().as_raw();
    let mut last_id = 0;
    let (ordinary, control) = (ConnectionSlots::new(MAX_CONNECTIONS), ConnectionSlots::new(MAX_CONTROL));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely no descriptors are left; wait for some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let peer = stream.peer_cred();
        // A process of another pid namespace has pid 0.
        let pid = peer.as_ref().ok().and_then(|peer| u32::try_from(peer.pid()?).ok()).filter(|pid| *pid > 0);
        if !peer.is_ok_and(|peer| peer.uid() == own) {
            refuse(&stream, "no_permission", "this hub belongs to another user");
            continue;
        }
        let taken = ordinary.take().map(|slot| (slot, Allowed::Everything));
        let Some((slot, allowed)) = taken.or_else(|| Some((control.take()?, Allowed::Control))) else {
            refuse(&stream, "busy", TOO_MANY);
            continue;
        };
        last_id += 1;
        let id = ConnectionId(last_id);
        let count = ConnectionGuard::begin(&open);
        let (inputs, desktop) = (inputs.clone(), desktop.clone());
        let sender = guard.clone().map(|guard| Sender { pid, guard });
        tokio::spawn(async move {
            Connection { peer: pid, sender, ..Connection::new(stream, inputs, desktop, (slot, allowed), id) }
                .run()
                .await;
            drop(count);
        });
    }
}

/// Sends the reason, if that is possible without waiting, and closes the connection.
fn refuse(stream: &UnixStream, code: &str, why: &str) {
    let response = Response::to(Value::Null, Err(ApiError::new(code, why)));
    let _ = stream.try_write(&response.line());
}

/// Counts a connection while it is open.
struct ConnectionGuard(Arc<AtomicUsize>);

impl ConnectionGuard {
    fn begin(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A token bucket for the requests of a connection.
struct RateLimiter {
    left: f64,
    at: Instant,
}

impl RateLimiter {
    fn take(&mut self, now: Instant) -> bool {
        self.left =
            (self.left + now.saturating_duration_since(self.at).as_secs_f64() * PER_SECOND).min(BURST);
        self.at = now;
        let allowed = self.left >= 1.0;
        if allowed {
            self.left -= 1.0;
        }
        allowed
    }
}

/// The process at the other end of a connection, and the guard that checks its requests.
struct Sender {
    pid: Option<u32>,
    guard: Arc<dyn RequestGuard>,
}

impl Sender {
    /// Returns an error if the process may not send this request.
    async fn check(&self, method: &str, params: &Value) -> Result<(), ApiError> {
        if !self.guard.is_reserved(method) {
            return Ok(());
        }
        let (pid, guard) = (self.pid, Arc::clone(&self.guard));
        let (method, params) = (method.to_owned(), params.clone());
        let checked = tokio::task::spawn_blocking(move || guard.check(pid, &method, &params)).await;
        let checked = checked.unwrap_or_else(|_| Err("it cannot be found out who asks for this".to_owned()));
        checked.map_err(|why| ApiError::new("no_permission", why))
    }
}

/// The requests that a connection may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Everything,
    /// One request, because the slot was lost while its line arrived.
    Once,
    /// One request of [`CONTROL`].
    Control,
}

struct Connection {
    lines: Lines,
    out: OwnedWriteHalf,
    inputs: mpsc::Sender<Input>,
    desktop: SessionDesktop,
    rate_limiter: RateLimiter,
    slot: ConnectionSlot,
    allowed: Allowed,
    id: ConnectionId,
    /// The process that connected, if it has a pid in this namespace.
    peer: Option<u32>,
    /// `None` if all requests are allowed.
    sender: Option<Sender>,
    /// The orders for this connection if it is a host. A host may be silent for any time.
    orders: Option<mpsc::Receiver<Vec<u8>>>,
    /// True if writing failed: the host is gone or accepts no more answers.
    reads_nothing: bool,
}

/// The client is gone or does not keep up.
struct Disconnected;

impl Connection {
    fn new(
        stream: UnixStream,
        inputs: mpsc::Sender<Input>,
        desktop: SessionDesktop,
        (slot, allowed): (ConnectionSlot, Allowed),
        id: ConnectionId,
    ) -> Self {
        let (read, out) = stream.into_split();
        let lines = Lines::of(read);
        let rate_limiter = RateLimiter { left: BURST, at: Instant::now() };
        Self {
            lines,
            out,
            inputs,
            desktop,
            rate_limiter,
            slot,
            allowed,
            id,
            peer: None,
            sender: None,
            orders: None,
            reads_nothing: false,
        }
    }

    async fn run(mut self) {
        self.answer_lines().await;
        if self.orders.is_some() {
            // If the loop is gone, so is its state of this host.
            let _ = self.inputs.send(Input::Event(LoopEvent::HostGone(self.id))).await;
        }
    }

    async fn answer_lines(&mut self) {
        let mut deadline = FIRST_FRAME_WITHIN;
        loop {
            let next = tokio::select! {
                // A line that has arrived is read even if the slot was lost meanwhile.
                biased;
                next = timeout(deadline, self.lines.next()) => next,
                order = next_order(&mut self.orders) => match order {
                    Some(order) if self.write(&order).await.is_ok() => continue,
                    // The host did not keep up.
                    _ => return,
                },
                // Cannot happen after the first line.
                () = self.slot.lost() => {
                    let error = ApiError::new("busy", TOO_MANY);
                    let _ = self.out.try_write(&Response::to(Value::Null, Err(error)).line());
                    return;
                }
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Err(TooLong)) => {
                    let error = ApiError::new("too_long", format!("a line has at most {MAX_LINE} bytes"));
                    let _ = self.write(&Response::to(Value::Null, Err(error)).line()).await;
                    return;
                }
                Ok(Ok(None)) | Err(_) => return,
            };
            if !self.slot.keep() {
                self.allowed = Allowed::Once;
            }
            if self.answer(&line).await.is_err() || self.allowed != Allowed::Everything {
                return;
            }
            let stays = self.orders.is_some() && !self.reads_nothing;
            deadline = if stays { Duration::MAX } else { IDLE_DEADLINE };
        }
    }

    async fn answer(&mut self, line: &[u8]) -> Result<(), Disconnected> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let request = match read_request(line) {
            Ok(request) => request,
            Err(error) => return self.write(&Response::to(Value::Null, Err(error)).line()).await,
        };
        let id = request.id;
        if !self.rate_limiter.take(Instant::now()) {
            let error = ApiError::new("rate_limited", format!("more than {PER_SECOND} requests per second"));
            return self.write(&Response::to(id, Err(error)).line()).await;
        }
        if self.allowed == Allowed::Control && !CONTROL.contains(&request.method.as_str()) {
            let error = ApiError::new("busy", TOO_MANY);
            return self.write(&Response::to(id, Err(error)).line()).await;
        }
        if let Some(sender) = &self.sender
            && let Err(error) = sender.check(&request.method, &request.params).await
        {
            return self.write(&Response::to(id, Err(error)).line()).await;
        }
        if request.method == "hub.stop" {
            self.write(&Response::to(id, Ok(json!({ "stopping": true }))).line()).await?;
            self.inputs.send(Input::Event(LoopEvent::Stop)).await.map_err(|_| Disconnected)?;
            // The connection stays open until the process ends, which `ringer hub stop` waits for.
            return std::future::pending().await;
        }
        let Answered { reply, behind } = self.ask(request.method, request.params).await?;
        match reply {
            Reply::Result(result) => self.write(&Response::to(id, result).without(behind).line()).await,
            Reply::Notifications { rows, clock } => {
                let line =
                    move || Response::to(id, Ok(view::notifications(&rows, &clock))).without(behind).line();
                let line = tokio::task::spawn_blocking(line).await.map_err(|_| Disconnected)?;
                self.write(&line).await
            }
            Reply::Environment { mut environment, offered } => {
                environment["desktop"] = self.desktop.view(offered).await;
                self.write(&Response::to(id, Ok(environment)).without(behind).line()).await
            }
            Reply::Subscribed(subscription) => self.follow(id, subscription).await,
            Reply::Attached(orders) => {
                self.orders = Some(orders);
                self.write(&Response::to(id, Ok(json!({ "version": HOST_PROTOCOL }))).without(behind).line())
                    .await
            }
        }
    }

    /// Sends a request to the loop and waits for its answer.
    async fn ask(&self, method: String, params: Value) -> Result<Answered, Disconnected> {
        let (reply, answered) = oneshot::channel();
        let request = Input::Request {
            request: Request { method, params, connection: self.id, peer: self.peer },
            reply,
        };
        self.inputs.send(request).await.map_err(|_| Disconnected)?;
        answered.await.map_err(|_| Disconnected)
    }

    /// Sends events until the client disconnects or does not keep up.
    async fn follow(&mut self, id: Value, subscription: Subscription) -> Result<(), Disconnected> {
        let Subscription { replay, gap, last_seq, mut receiver } = subscription;
        let begun = json!({ "subscribed": true, "gap": gap, "last_seq": last_seq });
        self.write(&Response::to(id, Ok(begun)).line()).await?;
        for event in replay {
            self.write(event.line()).await?;
        }
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.reset();
        loop {
            tokio::select! {
                event = receiver.recv() => match event {
                    Some(event) => self.write(event.line()).await?,
                    None => return Err(Disconnected),
                },
                _ = heartbeat.tick() => self.write(b"{\"event\":\"heartbeat\"}\n").await?,
                // A subscriber's requests are ignored; only the end of its stream matters.
                said = self.lines.next() => match said {
                    Ok(Some(_)) => {}
                    _ => return Err(Disconnected),
                },
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Disconnected> {
        match timeout(WRITE_DEADLINE, self.out.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            // A host's earlier requests still count although it accepts no more answers.
            Ok(Err(_)) if self.orders.is_some() => {
                self.reads_nothing = true;
                Ok(())
            }
            _ => Err(Disconnected),
        }
    }
}

/// Returns the next order for a host, or `None` if the loop disconnected it. Never completes for other connections.
async fn next_order(orders: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use ringer_deliver::{Desktop, REPLY_DEADLINE};

    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_a_rate() {
        let begin = Instant::now();
        let mut rate_limiter = RateLimiter { left: BURST, at: begin };
        let at_once = (0..5000).filter(|_| rate_limiter.take(begin)).count();
        assert_eq!(at_once, 1000);
        let later = begin + Duration::from_secs(1);
        assert_eq!((0..5000).filter(|_| rate_limiter.take(later)).count(), 500);
    }

    /// A connection without a hub, and the client's end.
    fn connection() -> (UnixStream, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (desktop, _) = Desktop::new(None, Vec::new(), REPLY_DEADLINE);
        let slot = ConnectionSlots::new(1).take().unwrap();
        let (inputs, _) = mpsc::channel(1);
        let desktop = SessionDesktop::new(desktop, None);
        let connection =
            Connection::new(theirs, inputs, desktop, (slot, Allowed::Everything), ConnectionId(1));
        (ours, tokio::spawn(connection.run()))
    }

    /// Runs on tokio's paused clock, which advances when all tasks are idle.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_or_does_not_read_is_closed() {
        let check = |what: &str, begun: tokio::time::Instant, expect: Duration| {
            let took = begun.elapsed();
            assert!((expect..expect + Duration::from_secs(1)).contains(&took), "{what}: {took:?}");
        };
        for (sends, expect) in
            [("", FIRST_FRAME_WITHIN), ("{\"method\":", FIRST_FRAME_WITHIN), ("\n", IDLE_DEADLINE)]
        {
            let (mut ours, served) = connection();
            let begun = tokio::time::Instant::now();
            ours.write_all(sends.as_bytes()).await.unwrap();
            served.await.unwrap();
            check(sends, begun, expect);
        }
        let (mut ours, served) = connection();
        let begun = tokio::time::Instant::now();
        // Each line gets a longer answer, which the client does not read.
        while ours.write_all(b"x\n").await.is_ok() {}
        served.await.unwrap();
        check("does not read", begun, WRITE_DEADLINE);
    }
}
