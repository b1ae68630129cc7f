//! The connection to the hub. It runs on its own threads, so that no pane waits for the hub.

mod answers;
mod said;
#[cfg(test)]
mod tests;
mod watch;
mod work_queue;

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use ringer_ipc::{HubClient, HubWriter};
use ringer_platform::{clear_wakes, wake, wake_pair};
use ringer_ui::{Agent, Backend};
use serde::Deserialize;
use serde_json::{Value, json};

use self::answers::Answers;
use self::said::{Said, Unanswered, drop_oldest, keep, kept_from};
use self::watch::HubWatch;
use self::work_queue::{Work, WorkQueue};
use crate::effect::HubOrder;

pub(crate) use self::said::KeptReport;

/// Connects to the hub. The argument allows starting one.
pub type Connect = Box<dyn Fn(bool) -> Option<HubClient> + Send>;

/// The shortest and the longest pause between attempts to connect. After the longest one, the hub's socket is watched instead.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// The longest pause between attempts if the socket cannot be watched.
const WITHOUT_WATCH: Duration = Duration::from_secs(30);
/// The same if the socket is watched: its directory may have been removed and created again.
const IN_ANY_CASE: Duration = Duration::from_mins(5);
/// Timeout for the answers of a hub that is too slow, before a new connection is made and everything is reported again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// The shortest time between two reads of the agents' states.
const LOAD_EVERY: Duration = Duration::from_millis(100);

/// An event of the connection.
#[derive(Debug)]
pub(crate) enum HubEvent {
    /// A new connection, whose hub knows nothing yet.
    Connected,
    /// The connection is lost.
    Lost,
    Order(HubOrder),
    Agents(Vec<Agent>),
}

/// Carries events from the threads to the loop.
#[derive(Debug, Clone)]
struct Mailbox {
    events: Arc<Mutex<VecDeque<HubEvent>>>,
    wakes: Arc<UnixStream>,
}

impl Mailbox {
    fn put(&self, event: HubEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Newer states replace older ones.
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
    work: Arc<WorkQueue>,
    unanswered: Unanswered,
    link: Arc<LinkState>,
    mailbox: Mailbox,
    woken: UnixStream,
}

/// The state of the connection, shared by the threads.
#[derive(Debug, Default)]
struct LinkState {
    is_connected: AtomicBool,
    /// The hub has closed the connection. New reports are saved for the next server at once.
    has_ended: AtomicBool,
    /// The queue overflowed, so the full state must be sent again.
    is_incomplete: AtomicBool,
}

impl HubHost {
    pub(crate) fn start(
        connect: Connect,
        socket: Option<PathBuf>,
        backend: Arc<dyn Backend>,
    ) -> io::Result<Self> {
        let (found, finds) = sync_channel(1);
        let host = Self::start_talking(connect, socket, found)?;
        start_reading_agents(backend, host.mailbox.clone(), finds, Arc::clone(&host.link));
        Ok(host)
    }

    /// Starts the thread that sends to the hub. It signals each new connection through `found`.
    fn start_talking(connect: Connect, socket: Option<PathBuf>, found: SyncSender<()>) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let mailbox = Mailbox { events: Arc::default(), wakes: Arc::new(wakes) };
        let (work, link) = (Arc::new(WorkQueue::default()), Arc::new(LinkState::default()));
        let hub = Hub {
            connect,
            mailbox: mailbox.clone(),
            link: Arc::clone(&link),
            found,
            watch: HubWatch::new(socket),
            work: Arc::clone(&work),
        };
        thread::spawn(move || hub.serve());
        Ok(Self { work, unanswered: Unanswered::default(), link, mailbox, woken })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Queues a request to the hub. For a one-time report, returns when it must be saved for the next server if it is not
    /// answered.
    pub(crate) fn tell(&mut self, method: &'static str, params: Value) -> Option<Instant> {
        let said = Arc::new(Said::new(method, params, Instant::now()));
        let lasts = !said.is_said_once();
        if !lasts {
            self.unanswered.add(&said);
        }
        // The hub is too slow, or has been gone for long.
        if !self.work.say(said) {
            self.link.is_incomplete.store(true, Ordering::Relaxed);
        }
        (!lasts).then(|| kept_from(self.has_hub(), Instant::now()))
    }

    /// The one-time reports that the next server has to send if this one is killed now.
    pub(crate) fn unanswered(&self, now: Instant) -> Vec<KeptReport> {
        self.unanswered.kept(self.has_hub(), now)
    }

    fn has_hub(&self) -> bool {
        let link = &self.link;
        link.is_connected.load(Ordering::Relaxed) && !link.has_ended.load(Ordering::Relaxed)
    }

    /// Returns the events since the last call.
    pub(crate) fn events(&self) -> VecDeque<HubEvent> {
        clear_wakes(&self.woken);
        std::mem::take(&mut *self.mailbox.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for HubHost {
    /// The thread sends what is queued, and ends.
    fn drop(&mut self) {
        self.work.close();
    }
}

/// The thread that connects and sends to the hub.
struct Hub {
    connect: Connect,
    mailbox: Mailbox,
    link: Arc<LinkState>,
    /// Wakes the thread that follows the agents.
    found: SyncSender<()>,
    watch: HubWatch,
    work: Arc<WorkQueue>,
}

impl Hub {
    /// Runs until the queue is closed.
    fn serve(&self) {
        let work = &self.work;
        let (shortest, longest) = TRY_AGAIN;
        let (mut pause, mut unsaid) = (shortest, VecDeque::new());
        loop {
            let begun = Instant::now();
            let mut connected = None;
            if let Some(connection) = attach(&self.connect, &self.mailbox, &self.link) {
                // The loop sends the lasting state again. Older requests about it are dropped: they may be outdated, and a
                // notification of a pane that the person looked at then would be marked as read.
                while let Some(waiting) = work.take_next() {
                    keep_unsaid(waiting, &mut unsaid);
                }
                self.link.is_incomplete.store(false, Ordering::Relaxed);
                self.link.is_connected.store(true, Ordering::Relaxed);
                self.mailbox.put(HubEvent::Connected);
                // A full channel means that the thread is woken already.
                let _ = self.found.try_send(());
                connected = Some(Instant::now());
                let is_over = follow(connection, &self.link, work, &mut unsaid);
                self.link.is_connected.store(false, Ordering::Relaxed);
                self.mailbox.put(HubEvent::Lost);
                if is_over {
                    return;
                }
            }
            let has_lasted = connected.is_some_and(|at| at.elapsed() > longest);
            pause = if has_lasted { shortest } else { (pause * 2).min(WITHOUT_WATCH) };
            let is_over = if pause > longest {
                self.wait_for_hub((begun, pause), &mut unsaid)
            } else {
                keep_for(Some(pause), work, &mut unsaid, |_| false)
            };
            if is_over {
                return;
            }
        }
    }

    /// Waits until the hub's socket exists, or a program sends a report that the hub has to know: then a hub may be started.
    /// Neither causes rapid retries, because a hub may be running and refuse. Returns true if the queue is closed.
    fn wait_for_hub(&self, (tried, pause): (Instant, Duration), unsaid: &mut VecDeque<Arc<Said>>) -> bool {
        let (work, wakes) = (&self.work, Arc::clone(&self.work));
        let is_watched = self.watch.begin(move || wakes.look());
        let is_there = |work: &Work| matches!(work, Work::Look);
        let is_said = |work: &Work| matches!(work, Work::Say(said) if said.is_said_once());
        let has_come = Cell::new(false);
        let is_enough = |work: &Work| {
            has_come.set(is_there(work));
            is_there(work) || is_said(work)
        };
        let looks_after = if is_watched { IN_ANY_CASE } else { WITHOUT_WATCH };
        if keep_for(Some(looks_after), work, unsaid, is_enough) {
            return true;
        }
        let is_enough = |work: &Work| {
            has_come.set(has_come.get() || is_there(work));
            is_there(work)
        };
        let rest = |pause: Duration| Some(pause.saturating_sub(tried.elapsed()));
        if !has_come.get() && keep_for(rest(WITHOUT_WATCH), work, unsaid, is_enough) {
            return true;
        }
        has_come.get() && keep_for(rest(pause), work, unsaid, |_| false)
    }
}

/// Keeps one-time reports until the pause is over, or until `is_enough` accepts an item. Returns true if the queue is closed.
fn keep_for(
    pause: Option<Duration>,
    work: &WorkQueue,
    unsaid: &mut VecDeque<Arc<Said>>,
    is_enough: impl Fn(&Work) -> bool,
) -> bool {
    let until = pause.map(|pause| Instant::now() + pause);
    loop {
        match work.wait_for_next(until) {
            Ok(waiting) => {
                let is_last = is_enough(&waiting);
                keep_unsaid(waiting, unsaid);
                if is_last {
                    return false;
                }
            }
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

fn keep_unsaid(work: Work, unsaid: &mut VecDeque<Arc<Said>>) {
    if let Work::Say(said) = work {
        keep(said, unsaid);
    }
}

fn attach(connect: &Connect, mailbox: &Mailbox, link: &Arc<LinkState>) -> Option<Connection> {
    let mut client = connect(true)?;
    client.call("host.attach", &json!({ "name": "panes", "can_focus": true, "emulates": true })).ok()?;
    let (mut reader, writer) = client.split().ok()?;
    let answers = Arc::new(Answers::default());
    link.has_ended.store(false, Ordering::Relaxed);
    let (mailbox, received, link) = (mailbox.clone(), Arc::clone(&answers), Arc::clone(link));
    thread::spawn(move || {
        // Unknown orders are ignored.
        while let Ok(Some(line)) = reader.next_line() {
            match serde_json::from_str(&line) {
                Ok(Line::Order(order)) => mailbox.put(HubEvent::Order(order)),
                // An answered report need not be saved for the next server any more.
                Ok(Line::Answer { .. }) if received.add() => wake(&mailbox.wakes),
                _ => {}
            }
        }
        received.end();
        link.has_ended.store(true, Ordering::Relaxed);
        mailbox.put(HubEvent::Lost);
    });
    Some(Connection::new(writer, answers))
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

/// Sends requests until the connection ends. Returns true if the queue is closed.
fn follow(
    mut connection: Connection,
    link: &LinkState,
    work: &WorkQueue,
    unsaid: &mut VecDeque<Arc<Said>>,
) -> bool {
    let is_last = say_all(&mut connection, link, work, unsaid);
    connection.end(unsaid);
    is_last
}

fn say_all(
    connection: &mut Connection,
    link: &LinkState,
    work: &WorkQueue,
    unsaid: &mut VecDeque<Arc<Said>>,
) -> bool {
    // The loop was just asked for the surfaces, and they are sent first: other reports refer to them.
    let mut waits_for_surfaces = true;
    loop {
        let Ok(waiting) = work.wait_for_next(None) else { return true };
        if link.is_incomplete.load(Ordering::Relaxed) {
            // This empties the queue for new requests.
            let rest = std::iter::from_fn(|| work.take_next());
            std::iter::once(waiting).chain(rest).for_each(|waiting| keep_unsaid(waiting, unsaid));
            // Unanswered reports are sent again on the next connection, and this hub would receive them twice.
            connection.answers.wait_for(connection.sent(), ANSWERS_WITHIN);
            return false;
        }
        // Everything is sent on a new connection.
        if connection.answers.is_over() {
            keep_unsaid(waiting, unsaid);
            return false;
        }
        let Work::Say(request) = waiting else { continue };
        if waits_for_surfaces && request.is_said_once() {
            keep(request, unsaid);
            continue;
        }
        // This is the last request of the full state. With `present`, it only reports that the person types, and may come at
        // any time.
        let is_last = request.method == "surface.looks" && request.params.get("present").is_none();
        if !connection.send(request, unsaid) {
            return false;
        }
        if waits_for_surfaces && is_last {
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

fn start_reading_agents(
    backend: Arc<dyn Backend>,
    mailbox: Mailbox,
    finds: Receiver<()>,
    link: Arc<LinkState>,
) {
    let (stale, readings) = sync_channel(1);
    let own = Arc::clone(&backend);
    thread::spawn(move || {
        while readings.recv().is_ok() {
            mailbox.put(HubEvent::Agents(own.load().agents));
            thread::sleep(LOAD_EVERY);
        }
    });
    thread::spawn(move || {
        let (shortest, longest) = (TRY_AGAIN.0, WITHOUT_WATCH);
        let mut pause = shortest;
        loop {
            let begun = Instant::now();
            // A full channel means that a read is due already.
            backend.follow(&|| _ = stale.try_send(()));
            pause = if begun.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
            // Without a connection, this waits for the other thread to find the next hub.
            let found = if link.is_connected.load(Ordering::Relaxed) {
                finds.recv_timeout(pause)
            } else {
                finds.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            if found == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    });
}

struct Connection {
    writer: HubWriter,
    /// The number of requests that were written.
    sent: u64,
    answers: Arc<Answers>,
}

impl Connection {
    fn new(writer: HubWriter, answers: Arc<Answers>) -> Self {
        Self { writer, sent: 0, answers }
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    /// Writes a request. Returns false, and keeps a one-time report, if the connection has failed.
    fn send(&mut self, request: Arc<Said>, unsaid: &mut VecDeque<Arc<Said>>) -> bool {
        self.sent += 1;
        // Before the write, because the answer may arrive at once.
        let is_expected = request.is_said_once() && self.answers.expect(self.sent, &request);
        let is_taken = self.writer.send(request.method, &request.params).is_ok();
        if !is_taken && !is_expected {
            keep(request, unsaid);
        }
        is_taken
    }

    /// Keeps unanswered reports for the next connection.
    fn end(self, unsaid: &mut VecDeque<Arc<Said>>) {
        for request in self.answers.take_unanswered().into_iter().rev() {
            unsaid.push_front(request);
        }
        drop_oldest(unsaid);
    }
}
