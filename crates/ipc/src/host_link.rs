//! A host's connection to the hub, on threads of its own, so that the host's loop never waits for the hub.
//!
//! A host says three kinds of things:
//! - **facts**, which last: its surfaces and what the person looks at ([`HostFacts`]). The link sends what changed, and all of
//!   them to each new hub;
//! - **reports**, which are said once, such as a notification of a program. Each is kept until a hub has answered it;
//! - **moments**, such as the answer to a focus order, which are sent now or never.

mod dialing;
mod reports;
#[cfg(test)]
mod simulation;
mod state;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::reports::HostReport;
use self::state::{LinkState, Request, Step};
use self::watch::HubWatch;
use crate::client::{HubClient, HubClientError, HubWriter};
use crate::protocol::ApiError;

pub use self::reports::{KeptReport, ReportMethod};
pub use self::state::HostFacts;

/// The event with which a hub says that it can write again.
const WRITABLE: &str = "writable";

/// Connects to the hub. The argument allows starting one.
pub type Connect = Box<dyn Fn(bool) -> Option<HubClient> + Send>;

/// How a host attaches to the hub.
pub struct HostOptions {
    /// The parameters of `host.attach`.
    pub attach: Value,
    /// Connects to the hub.
    pub connect: Connect,
    /// The hub's socket, which is watched while there is no hub.
    pub socket: Option<PathBuf>,
    /// A hub that is gone is started again without a report for it. In any case the first attempt to connect may start one.
    pub restarts_hub: bool,
    /// Attached only while there is a surface or a report: an idle hub ends when no host is attached.
    pub is_detached_when_empty: bool,
}

/// An event of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent<Order> {
    /// A hub is connected. It is sent all facts.
    Connected,
    /// The connection is lost.
    Lost,
    /// An order of the hub that the host understands.
    Order(Order),
    /// The hub has answered a report, which need not be kept any more.
    Answered,
}

/// A host's connection to the hub. Dropping it sends what is queued, as far as a hub is connected.
#[derive(Debug)]
pub struct HostLink {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<LinkState>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the thread that sends.
    fn change<T>(&self, change: impl FnOnce(&mut LinkState) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }
}

impl HostLink {
    /// Starts the threads. `events` is called on its threads; it must return at once and not call the link.
    pub fn start<Order: DeserializeOwned + 'static>(
        options: HostOptions,
        events: impl Fn(LinkEvent<Order>) + Send + Sync + 'static,
    ) -> Self {
        let state = LinkState::new(options.restarts_hub, options.is_detached_when_empty);
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let sender = Sender {
            shared: Arc::clone(&shared),
            attach: options.attach,
            connect: options.connect,
            watch: HubWatch::new(options.socket),
            writer: None,
            events: Arc::new(events),
        };
        thread::spawn(move || sender.run());
        Self { shared }
    }

    /// Begins to connect. Until then a host describes its surfaces, because reports follow the surfaces that they name.
    pub fn begin(&self) {
        self.shared.change(LinkState::begin);
    }

    /// Returns true if a hub is connected.
    pub fn is_connected(&self) -> bool {
        self.shared.state().is_connected()
    }

    /// Replaces the facts.
    pub fn set_facts(&self, facts: HostFacts) {
        if self.shared.state().set_facts(facts) {
            self.shared.changed.notify_all();
        }
    }

    /// Queues a report. Returns when it must be saved for the next process of the host if it is not answered.
    pub fn report(&self, method: ReportMethod, params: Value) -> Instant {
        self.queue(HostReport::new(method, params, Instant::now()))
    }

    /// Queues a report of the last process of this host. It keeps its id, so the hub recognises it.
    pub fn adopt(&self, report: KeptReport) -> Instant {
        self.queue(report.into_report(Instant::now()))
    }

    fn queue(&self, report: HostReport) -> Instant {
        let reported = report.reported;
        self.shared.change(|state| {
            state.report(report);
            state.keep_from(reported)
        })
    }

    /// The reports to save for the next process of the host, oldest first: those that a connected hub has not answered in time,
    /// or all if there is no hub.
    pub fn kept_reports(&self, now: Instant) -> Vec<KeptReport> {
        self.shared.state().kept_reports(now)
    }

    /// Reports that the person is present.
    pub fn present(&self) {
        self.shared.change(LinkState::present);
    }

    /// Sends a request now, or never if no hub is connected.
    pub fn moment(&self, method: &'static str, params: Value) {
        self.shared.change(|state| state.moment(Request { method, params }));
    }

    /// Sends what is queued and waits for the answers, for at most `within`.
    pub fn finish(self, within: Duration) {
        self.shared.change(LinkState::close);
        let is_open = |state: &mut LinkState| !state.has_ended();
        drop(self.shared.changed.wait_timeout_while(self.shared.state(), within, is_open));
    }
}

impl Drop for HostLink {
    fn drop(&mut self) {
        self.shared.change(LinkState::close);
    }
}

/// Passes on the events of a link.
type Events<Order> = Arc<dyn Fn(LinkEvent<Order>) + Send + Sync>;

/// The thread that connects and sends.
struct Sender<Order> {
    shared: Arc<Shared>,
    attach: Value,
    connect: Connect,
    watch: HubWatch,
    writer: Option<HubWriter>,
    events: Events<Order>,
}

impl<Order: DeserializeOwned + 'static> Sender<Order> {
    fn run(mut self) {
        loop {
            match self.next_step() {
                Step::Connect { may_start } => self.connect(may_start),
                Step::Send(request) => self.send(&request),
                Step::Disconnect => self.writer = None,
                Step::End => return self.shared.change(LinkState::end),
                Step::Watch => self.watch(),
                Step::Wait(_) => {}
            }
        }
    }

    /// Waits for the next step.
    fn next_step(&self) -> Step {
        let mut state = self.shared.state();
        loop {
            let now = Instant::now();
            let until = match state.next_step(now) {
                Step::Wait(until) => until,
                step => return step,
            };
            let changed = &self.shared.changed;
            state = match until {
                Some(until) => {
                    let left = until.saturating_duration_since(now);
                    changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn watch(&self) {
        let shared = Arc::clone(&self.shared);
        let is_watched = self.watch.begin(move || shared.change(LinkState::hub_seen));
        self.shared.change(|state| state.watch(is_watched));
    }

    fn connect(&mut self, may_start: bool) {
        let client = (self.connect)(may_start);
        let attached = client.and_then(|client| attach(client, &self.attach).ok());
        let mut state = self.shared.state();
        let Some((reader, writer)) = attached else { return state.connect_failed(Instant::now()) };
        let number = state.connected(Instant::now());
        (self.events)(LinkEvent::Connected);
        drop(state);
        self.writer = Some(writer);
        let (shared, events) = (Arc::clone(&self.shared), Arc::clone(&self.events));
        thread::spawn(move || read(reader, number, &shared, &*events));
    }

    fn send(&mut self, request: &Request) {
        let writer = self.writer.as_mut();
        if writer.is_none_or(|writer| writer.send(request.method, &request.params).is_err()) {
            self.writer = None;
            let mut state = self.shared.state();
            if state.lost(None, Instant::now()) {
                (self.events)(LinkEvent::Lost);
            }
        }
    }
}

fn attach(mut client: HubClient, host: &Value) -> Result<(HubClient, HubWriter), HubClientError> {
    client.call("host.attach", host)?;
    client.split()
}

/// A line of the hub: an order if it has an event, and an answer otherwise.
#[derive(Deserialize)]
struct HubLine {
    event: Option<String>,
    error: Option<ApiError>,
}

/// Reads the answers and orders of one connection. The state stays locked while an event is passed on, so that no event of a
/// connection comes before its `Connected` or after its `Lost`.
fn read<Order: DeserializeOwned>(
    mut reader: HubClient,
    connection: u64,
    shared: &Shared,
    events: &dyn Fn(LinkEvent<Order>),
) {
    while let Ok(Some(line)) = reader.next_line() {
        let Ok(HubLine { event, error }) = serde_json::from_str(&line) else { continue };
        let mut state = shared.state();
        if !state.is_connection(connection) {
            return;
        }
        match event.as_deref() {
            Some(WRITABLE) => state.writable(),
            // Orders for other kinds of hosts are ignored.
            Some(_) => {
                if let Ok(order) = serde_json::from_str(&line) {
                    events(LinkEvent::Order(order));
                }
                continue;
            }
            None => {
                if state.answered(error.as_ref().map(|error| error.code.as_str()), Instant::now()) {
                    events(LinkEvent::Answered);
                }
            }
        }
        drop(state);
        shared.changed.notify_all();
    }
    let mut state = shared.state();
    if state.lost(Some(connection), Instant::now()) {
        events(LinkEvent::Lost);
    }
    drop(state);
    shared.changed.notify_all();
}
