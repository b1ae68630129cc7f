//! The connection to the hub, on threads of its own: whatever the hub does, no pane waits.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringer_ipc::{HubClient, HubWriter};
use ringer_platform::{clear_wakes, wake, wake_pair};
use ringer_ui::{Agent, Backend};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub_order::HubOrder;

/// Connects to the hub. The argument says whether one may be started.
pub type Connect = Box<dyn Fn(bool) -> Option<HubClient> + Send>;

/// What may wait for the hub. Beyond that, what programs say is lost.
const MAX_WAITING: usize = 1024;
/// How long after a failure the hub is looked for again: at first, and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// The shortest time between two readings of the agents' states.
const LOAD_EVERY: Duration = Duration::from_millis(100);

/// A request to the hub: its method and its parameters.
type Said = (&'static str, Value);

/// What comes from the hub.
#[derive(Debug)]
pub(crate) enum HubEvent {
    /// A hub was connected to, and knows nothing yet.
    Connected,
    /// The hub has gone.
    Lost,
    Order(HubOrder),
    Agents(Vec<Agent>),
}

/// Where the threads leave what they have for the loop.
#[derive(Debug, Clone)]
struct Mailbox {
    events: Arc<Mutex<VecDeque<HubEvent>>>,
    wakes: Arc<UnixStream>,
}

impl Mailbox {
    fn put(&self, event: HubEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the newest states are of use.
        if matches!(event, HubEvent::Agents(_)) {
            events.retain(|waiting| !matches!(waiting, HubEvent::Agents(_)));
        }
        events.push_back(event);
        drop(events);
        wake(&self.wakes);
    }
}

/// The loop's end of the connection.
#[derive(Debug)]
pub(crate) struct HubHost {
    requests: SyncSender<Said>,
    mailbox: Mailbox,
    woken: UnixStream,
}

impl HubHost {
    pub(crate) fn start(connect: Connect, backend: Arc<dyn Backend>) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let mailbox = Mailbox { events: Arc::default(), wakes: Arc::new(wakes) };
        let (requests, received) = sync_channel(MAX_WAITING);
        let own = mailbox.clone();
        thread::spawn(move || serve(&connect, &received, &own));
        start_reading_agents(backend, mailbox.clone());
        Ok(Self { requests, mailbox, woken })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Tells the hub something. Does not wait.
    pub(crate) fn tell(&self, method: &'static str, params: Value) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.requests.try_send((method, params))
        {
            // The hub is too slow, or gone for long. One that is gone is told everything that lasts when it is back.
        }
    }

    /// What has come since the last call.
    pub(crate) fn events(&self) -> VecDeque<HubEvent> {
        clear_wakes(&self.woken);
        std::mem::take(&mut *self.mailbox.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is said of a moment, and not of what lasts: it is not said anew by the loop.
fn is_said_once(method: &str) -> bool {
    matches!(method, "surface.heard" | "surface.unread")
}

fn serve(connect: &Connect, requests: &Receiver<Said>, mailbox: &Mailbox) {
    let (shortest, longest) = TRY_AGAIN;
    let (mut pause, mut unsaid) = (shortest, VecDeque::new());
    loop {
        let begun = Instant::now();
        if let Some(connection) = attach(connect, mailbox) {
            // What lasts is said anew by the loop. What it said before may be wrong by now: what the person looked at then would
            // be read.
            while let Ok(request) = requests.try_recv() {
                keep_unsaid(request, &mut unsaid);
            }
            mailbox.put(HubEvent::Connected);
            let is_over = follow(connection, requests, &mut unsaid);
            mailbox.put(HubEvent::Lost);
            if is_over {
                return;
            }
        }
        pause = if begun.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
        // Meanwhile it is kept what programs say.
        let until = Instant::now() + pause;
        loop {
            match requests.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(request) => keep_unsaid(request, &mut unsaid),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Keeps what would not be said anew.
fn keep_unsaid(request: Said, unsaid: &mut VecDeque<Said>) {
    if is_said_once(request.0) && unsaid.len() < MAX_WAITING {
        unsaid.push_back(request);
    }
}

struct Connection {
    writer: HubWriter,
    is_over: Arc<Mutex<bool>>,
    /// Requests that were written, and those of them that the hub has answered.
    sent: u64,
    answered: Arc<AtomicU64>,
    /// What was said once and is not answered yet, by the number of its request: a hub that ends may have taken it and not read it.
    unanswered: VecDeque<(u64, Said)>,
}

impl Connection {
    /// Gives whether the hub took it. If not, it is kept.
    fn send(&mut self, request: Said, unsaid: &mut VecDeque<Said>) -> bool {
        let answered = self.answered.load(Ordering::Relaxed);
        while self.unanswered.front().is_some_and(|(number, _)| *number <= answered) {
            self.unanswered.pop_front();
        }
        self.sent += 1;
        if self.writer.send(request.0, &request.1).is_err() {
            keep_unsaid(request, unsaid);
            return false;
        }
        if is_said_once(request.0) && self.unanswered.len() < MAX_WAITING {
            self.unanswered.push_back((self.sent, request));
        }
        true
    }

    /// What the hub has not answered has to be said to the next one.
    fn end(self, unsaid: &mut VecDeque<Said>) {
        let answered = self.answered.load(Ordering::Relaxed);
        let lost = self.unanswered.into_iter().filter(|(number, _)| *number > answered);
        for (_, request) in lost.rev() {
            unsaid.push_front(request);
        }
    }
}

fn attach(connect: &Connect, mailbox: &Mailbox) -> Option<Connection> {
    let mut client = connect(true)?;
    client.call("host.attach", &json!({ "name": "panes", "can_focus": true, "emulates": true })).ok()?;
    let (mut reader, writer) = client.split().ok()?;
    let (is_over, answered) = (Arc::new(Mutex::new(false)), Arc::new(AtomicU64::new(0)));
    let (mailbox, ended, answers) = (mailbox.clone(), Arc::clone(&is_over), Arc::clone(&answered));
    thread::spawn(move || {
        // Orders that this version does not know are left out.
        while let Ok(Some(line)) = reader.next_line() {
            match serde_json::from_str(&line) {
                Ok(Line::Order(order)) => mailbox.put(HubEvent::Order(order)),
                Ok(Line::Answer { .. }) => _ = answers.fetch_add(1, Ordering::Relaxed),
                _ => {}
            }
        }
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        mailbox.put(HubEvent::Lost);
    });
    Some(Connection { writer, is_over, sent: 0, answered, unanswered: VecDeque::new() })
}

/// A line of the hub.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Order(HubOrder),
    Answer {
        #[serde(rename = "ok")]
        _is_ok: bool,
    },
}

/// Says what there is to say until the connection ends. Gives whether nothing more will be said.
fn follow(mut connection: Connection, requests: &Receiver<Said>, unsaid: &mut VecDeque<Said>) -> bool {
    let is_last = say_all(&mut connection, requests, unsaid);
    connection.end(unsaid);
    is_last
}

fn say_all(connection: &mut Connection, requests: &Receiver<Said>, unsaid: &mut VecDeque<Said>) -> bool {
    let ended = Arc::clone(&connection.is_over);
    let is_over = || *ended.lock().unwrap_or_else(PoisonError::into_inner);
    // The surfaces are said first, because the loop is asked for them now: what is heard needs them.
    let mut waits_for_surfaces = !unsaid.is_empty();
    loop {
        let Ok(request) = requests.recv() else { return true };
        if is_over() {
            keep_unsaid(request, unsaid);
            return false;
        }
        let is_looks = request.0 == "surface.looks";
        if !connection.send(request, unsaid) {
            return false;
        }
        // It comes last of what a new hub is told.
        if waits_for_surfaces && is_looks {
            waits_for_surfaces = false;
            let mut kept = std::mem::take(unsaid).into_iter();
            while let Some(request) = kept.next() {
                if !connection.send(request, unsaid) {
                    unsaid.extend(kept);
                    return false;
                }
            }
        }
    }
}

fn start_reading_agents(backend: Arc<dyn Backend>, mailbox: Mailbox) {
    let (stale, readings) = sync_channel(1);
    let own = Arc::clone(&backend);
    thread::spawn(move || {
        while readings.recv().is_ok() {
            mailbox.put(HubEvent::Agents(own.load().agents));
            thread::sleep(LOAD_EVERY);
        }
    });
    thread::spawn(move || {
        let (shortest, longest) = TRY_AGAIN;
        let mut pause = shortest;
        loop {
            let begun = Instant::now();
            // If a reading is due already, another one is not needed.
            backend.follow(&|| _ = stale.try_send(()));
            pause = if begun.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
            thread::sleep(pause);
        }
    });
}
