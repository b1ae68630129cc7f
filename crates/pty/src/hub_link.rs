//! The connection to the hub. It runs on separate threads, so that the program and its terminal never wait for the hub.
//!
//! If the hub is gone, the next request connects again.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_ipc::{HubClient, HubClientError, HubWriter};
use ringer_platform::{clear_wakes, wake, wake_pair};
use serde::Deserialize;
use serde_json::{Value, json};

/// The method that reports a notification of a program.
pub(crate) const HEARD: &str = "surface.heard";
/// The most queued requests. More are lost.
const MAX_WAITING: usize = 256;
/// The number and the interval of attempts to connect again to a hub.
const TRIES: usize = 10;
const TRY_AGAIN: Duration = Duration::from_millis(200);
/// How long the end of the program waits for unsent requests.
const FINISH_WITHIN: Duration = Duration::from_millis(500);

/// Connects to the hub. The argument allows starting one.
pub type Connect = Box<dyn Fn(bool) -> Option<HubClient> + Send>;

/// The surface of the program, for the hub.
pub struct HubSurface {
    /// The id of the surface.
    pub surface: SurfaceId,
    /// The description of the surface, if no other host has it.
    pub own: Option<OwnSurface>,
    /// Connects to the hub.
    pub connect: Connect,
}

/// A surface whose host is this process.
#[derive(Debug, Clone, Default)]
pub struct OwnSurface {
    /// The device of the real terminal.
    pub tty: Option<String>,
    /// The id of its workspace.
    pub workspace: Option<String>,
    /// The terminal may be asked to report focus.
    pub reports_focus: bool,
    /// The ring is shown as a mark in the title.
    pub marks_title: bool,
}

/// A line from the hub.
#[derive(Debug, Deserialize)]
#[serde(from = "AnyLine")]
enum HubLine {
    Ring { surface_id: SurfaceId, lit: bool },
    Answer { result: Option<Value> },
    Other,
}

/// The form of any line. It is an order if it has an event, and an answer otherwise.
#[derive(Debug, Deserialize)]
struct AnyLine {
    event: Option<String>,
    #[serde(default)]
    data: Value,
    result: Option<Value>,
}

impl From<AnyLine> for HubLine {
    fn from(line: AnyLine) -> Self {
        match (line.event.as_deref(), line.data["surface_id"].as_str()) {
            (None, _) => Self::Answer { result: line.result },
            (Some("ring"), Some(surface)) => {
                Self::Ring { surface_id: SurfaceId::new(surface), lit: line.data["lit"] == true }
            }
            (Some(_), _) => Self::Other,
        }
    }
}

enum Said {
    /// Connect if there is a hub.
    Attach {
        may_start: bool,
    },
    Request {
        method: &'static str,
        params: Value,
    },
    Finish(SyncSender<()>),
}

/// The state that the threads share with the loop.
#[derive(Debug)]
struct Shared {
    /// The number of the open connection, or 0.
    connection: AtomicU64,
    is_lit: AtomicBool,
    wakes: UnixStream,
    last_request: Mutex<Option<LastRequest>>,
}

/// The numbers of requests and answers on one connection.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    answered: AtomicU64,
}

impl Counts {
    fn is_all_answered(&self) -> bool {
        self.sent.load(Ordering::Relaxed) <= self.answered.load(Ordering::Relaxed)
    }
}

/// The state while the answer to the last request is awaited.
#[derive(Debug)]
struct LastRequest {
    done: SyncSender<()>,
    _writer: HubWriter,
}

impl Shared {
    fn last_request(&self) -> MutexGuard<'_, Option<LastRequest>> {
        self.last_request.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop's end of the connection.
#[derive(Debug)]
pub(crate) struct HubLink {
    said: SyncSender<Said>,
    shared: Arc<Shared>,
    woken: UnixStream,
}

impl HubLink {
    pub(crate) fn start(surface: HubSurface) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let shared = Arc::new(Shared {
            connection: AtomicU64::new(0),
            is_lit: AtomicBool::new(false),
            wakes,
            last_request: Mutex::new(None),
        });
        let (said, receiver) = sync_channel(MAX_WAITING);
        let opened = surface.own.as_ref().map(
            |own| json!({ "surface_id": surface.surface, "workspace_id": own.workspace, "tty": own.tty }),
        );
        let mut thread = LinkThread {
            surface: surface.surface,
            connect: surface.connect,
            opened,
            looks: None,
            shared: Arc::clone(&shared),
            said: said.clone(),
            writer: None,
            unanswered: VecDeque::new(),
            counts: Arc::default(),
            connections: 0,
        };
        thread::spawn(move || thread.serve(&receiver));
        let link = Self { said, shared, woken };
        link.attach(true);
        Ok(link)
    }

    /// Becomes readable when the ring or the connection may have changed.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    pub(crate) fn clear_wakes(&self) {
        clear_wakes(&self.woken);
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.shared.connection.load(Ordering::Relaxed) != 0
    }

    /// Returns true if the surface rings.
    pub(crate) fn is_lit(&self) -> bool {
        self.is_attached() && self.shared.is_lit.load(Ordering::Relaxed)
    }

    /// Connects if the connection has ended.
    pub(crate) fn attach(&self, may_start: bool) {
        let _ = self.said.try_send(Said::Attach { may_start });
    }

    /// Sends a request, starting a hub if there is none.
    pub(crate) fn send(&self, method: &'static str, params: Value) {
        let _ = self.said.try_send(Said::Request { method, params });
    }

    /// Waits a moment until queued requests are sent.
    pub(crate) fn finish(self) {
        let (done, is_done) = sync_channel(1);
        if self.said.try_send(Said::Finish(done)).is_ok() {
            let _ = is_done.recv_timeout(FINISH_WITHIN);
        }
    }
}

struct LinkThread {
    surface: SurfaceId,
    connect: Connect,
    /// The description of the surface and the last `surface.looks`, which every new hub is sent.
    opened: Option<Value>,
    looks: Option<Value>,
    shared: Arc<Shared>,
    said: SyncSender<Said>,
    writer: Option<HubWriter>,
    /// Notifications without an answer, by the number of their request: a hub that ends may have received but not read them.
    unanswered: VecDeque<(u64, Value)>,
    counts: Arc<Counts>,
    connections: u64,
}

impl LinkThread {
    fn serve(&mut self, said: &Receiver<Said>) {
        for said in said {
            match said {
                Said::Attach { may_start: false } => _ = self.attach(false),
                Said::Attach { may_start: true } => _ = self.attach_patiently(),
                Said::Request { method, params } => self.send(method, params),
                Said::Finish(done) => return self.send_last_request(done),
            }
        }
    }

    /// Sends a last request and waits for its answer, because the hub may not handle requests after the connection has ended.
    fn send_last_request(&mut self, done: SyncSender<()>) {
        let is_open = self.shared.connection.load(Ordering::Relaxed) == self.connections;
        let Some(mut writer) = self.writer.take().filter(|_| is_open) else {
            let _ = done.send(());
            return;
        };
        // Dropping the writer would end the connection.
        let asked = writer.send("ping", &Value::Null);
        if asked.is_ok() {
            *self.shared.last_request() = Some(LastRequest { done, _writer: writer });
        }
    }

    fn send(&mut self, method: &'static str, mut params: Value) {
        if method == "surface.looks" {
            let mut lasting = params.clone();
            if let Some(fields) = lasting.as_object_mut() {
                fields.remove("present");
            }
            self.looks = Some(lasting);
        }
        if method == "surface.changed" {
            // The other fields of the description stay.
            if let (Some(opened), Some(changed)) =
                (self.opened.as_mut().and_then(Value::as_object_mut), params.as_object_mut())
            {
                opened.append(changed);
            }
            params = self.opened.clone().unwrap_or_default();
        }
        // The end of a connection is noticed by the first write at the latest, so one retry is enough.
        for _ in 0..2 {
            if self.attach_patiently() && self.write(method, &params) {
                return;
            }
        }
    }

    /// Connects, with retries if there was a hub before: it may be about to end, or several processes may be starting one.
    fn attach_patiently(&mut self) -> bool {
        let tries = if self.connections == 0 { 1 } else { TRIES };
        (1..=tries).any(|number| {
            let is_attached = self.attach(true);
            if !is_attached && number < tries {
                thread::sleep(TRY_AGAIN);
            }
            is_attached
        })
    }

    /// Writes a request. Notifications are kept until the hub has answered.
    fn write(&mut self, method: &str, params: &Value) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        let answered = self.counts.answered.load(Ordering::Relaxed);
        while self.unanswered.front().is_some_and(|(number, _)| *number <= answered) {
            self.unanswered.pop_front();
        }
        // Counted first, because the connection may end as soon as it is written.
        let number = self.counts.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if writer.send(method, params).is_err() {
            self.writer = None;
            return false;
        }
        if method == HEARD && self.unanswered.len() < MAX_WAITING {
            self.unanswered.push_back((number, params.clone()));
        }
        true
    }

    /// Connects if there is no connection.
    fn attach(&mut self, may_start: bool) -> bool {
        if self.writer.is_none() || self.shared.connection.load(Ordering::Relaxed) != self.connections {
            self.writer = None;
            let Some(client) = (self.connect)(may_start) else { return false };
            return self.attach_to(client).is_ok();
        }
        true
    }

    fn attach_to(&mut self, mut client: HubClient) -> Result<(), HubClientError> {
        client.call("host.attach", &json!({ "name": "run" }))?;
        let (mut reader, writer) = client.split()?;
        self.writer = Some(writer);
        self.connections += 1;
        let answered = self.counts.answered.load(Ordering::Relaxed);
        self.counts = Arc::default();
        let unanswered = std::mem::take(&mut self.unanswered);
        let unanswered = unanswered.into_iter().filter(|(number, _)| *number > answered);
        let (number, shared, surface) = (self.connections, Arc::clone(&self.shared), self.surface.clone());
        let (counts, said) = (Arc::clone(&self.counts), self.said.clone());
        shared.connection.store(number, Ordering::Relaxed);
        thread::spawn(move || {
            while let Ok(Some(line)) = reader.next_line() {
                match serde_json::from_str(&line) {
                    Ok(HubLine::Ring { surface_id, lit }) if surface_id == surface => {
                        shared.is_lit.store(lit, Ordering::Relaxed);
                        wake(&shared.wakes);
                    }
                    Ok(HubLine::Answer { result }) => {
                        counts.answered.fetch_add(1, Ordering::Relaxed);
                        if result.is_some_and(|result| result["pong"] == true)
                            && let Some(last) = shared.last_request().take()
                        {
                            let _ = last.done.send(());
                        }
                    }
                    // Other orders, and rings of other surfaces.
                    _ => {}
                }
            }
            let ended = shared.connection.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed);
            if ended.is_ok() {
                shared.is_lit.store(false, Ordering::Relaxed);
                wake(&shared.wakes);
            }
            if !counts.is_all_answered() {
                let _ = said.try_send(Said::Attach { may_start: true });
            }
        });
        let opened = self.opened.iter().map(|opened| ("surface.opened", opened.clone()));
        let looks = self.looks.iter().map(|looks| ("surface.looks", looks.clone()));
        let again = unanswered.map(|(_, heard)| (HEARD, heard));
        let requests: Vec<_> = opened.chain(looks).chain(again).collect();
        let mut requests = requests.into_iter();
        let failed = requests.find(|(method, params)| !self.write(method, params));
        let is_attached = failed.is_none();
        // These are kept for the next connection. The number is higher than any that this one can answer.
        let unheard = failed.into_iter().chain(requests).filter(|(method, _)| *method == HEARD);
        self.unanswered.extend(unheard.map(|(_, heard)| (u64::MAX, heard)));
        if is_attached { Ok(()) } else { Err(HubClientError::NoHub) }
    }
}
