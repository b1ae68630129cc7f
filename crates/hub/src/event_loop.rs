//! The event loop: the only place that waits. It passes events to [`HubState`] one by one, and performs the actions that it
//! returns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::message::Agent;
use ringer_deliver::Desktop;
use ringer_ipc::{ApiError, json_line};
use ringer_journal::{Error, Home, HubLock, ReadPosition, Removal};
use serde_json::json;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::clock::{Clock, monotonic};
use crate::error::HubError;
use crate::hosts::protocol::{ConnectionId, HostOrder, SentOrder};
use crate::log::Log;
use crate::message::{Action, Answer, Answered, Input, Job, LoopEvent, Reply, RequestId};
use crate::process;
use crate::repository_probe::{PROBE_TIMEOUT, ProbeResult, ProbeTarget, RepositoryProber, RunningProbe};
use crate::socket::subscriptions::EventLog;
use crate::state::{HubState, RETRY_AFTER};
use crate::watch::Watcher;

/// The most inputs that wait for the loop. Then senders wait; the doorbell is rung only once.
pub(crate) const MAX_INPUTS: usize = 1024;
/// The most inputs that are handled in one transaction.
const MAX_TOGETHER: usize = 64;
/// The most orders that wait for one host: a ring for each of its surfaces, and more.
const MAX_ORDERS: usize = 8192;
/// After this, targets behind a directory that hangs are not probed again.
const PROBE_AGAIN_FOR: Duration = PROBE_TIMEOUT.saturating_mul(2);
/// How long a popup that may still be clicked keeps an idle hub running: from one evening to the next.
const WAIT_FOR_CLICKS: Duration = Duration::from_hours(24);

/// Connects the loop with the rest of the hub.
pub(crate) struct LoopChannels {
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) inputs: mpsc::WeakSender<Input>,
    /// The number of connected clients.
    pub(crate) clients: Arc<AtomicUsize>,
    pub(crate) desktop: Desktop,
    pub(crate) log: Log,
    /// How long an idle hub runs before it ends.
    pub(crate) idle_after: Duration,
}

/// The result of a loop. It holds the lock, which is dropped only after the socket and `hub.json` are removed.
pub(crate) struct LoopExit {
    pub(crate) lock: HubLock,
    pub(crate) position: ReadPosition,
    /// Ended because it was idle.
    pub(crate) was_idle: bool,
    /// Ended because its files are damaged or were replaced.
    pub(crate) unusable: bool,
}

/// Why the loop woke up.
enum Wakeup {
    Input(Input),
    /// The journal has new messages.
    Doorbell,
    /// The doorbell may have been removed.
    DoorbellChanged,
    /// The executor takes jobs again.
    Room,
    /// The probe of the repositories is finished.
    Probed,
    /// The journal has more to read.
    More,
    /// A deadline has passed.
    Deadline,
    /// All senders are gone; the hub shuts down.
    Closed,
}

/// The loop and everything that only it may use.
pub(crate) struct EventLoop {
    state: HubState,
    clock: Clock,
    doorbell: HubDoorbell,
    channels: LoopChannels,
    /// Jobs that the executor has not taken yet. It takes them at once, so these are only the latest.
    job_backlog: VecDeque<Job>,
    events: EventLog,
    /// The orders for each host.
    hosts: HashMap<ConnectionId, mpsc::Sender<Vec<u8>>>,
    /// The clients that wait for an answer.
    replies: HashMap<RequestId, oneshot::Sender<Answered>>,
    last_request: u64,
    probers: RepositoryProber,
    probing: Option<RepositoryProbe>,
    processes: HashMap<Agent, JoinHandle<()>>,
    watcher: Option<Watcher>,
    last_activity: Duration,
    /// The longest time between two waits since the latest `hub.status`. Nothing else was handled in that time.
    longest_turn: Duration,
    /// Since when only a popup keeps the hub from ending.
    only_popups_since: Option<Duration>,
    stopping: bool,
    was_idle: bool,
}

/// A running probe of repositories.
struct RepositoryProbe {
    probe: RunningProbe,
    /// The results of earlier probes of the same batch.
    found: Vec<(ProbeTarget, ProbeResult)>,
    begun: Duration,
}

impl EventLoop {
    /// Continues where the last hub stopped. Must be called inside a tokio runtime.
    pub(crate) async fn begin(
        mut state: HubState,
        lock: HubLock,
        channels: LoopChannels,
        mut probers: RepositoryProber,
    ) -> Result<Self, HubError> {
        let clock = Clock::local();
        let probed = match probers.send(state.recovery_targets()?, monotonic()) {
            Some(mut probe) => {
                // The probe holds its results even if the timeout passes.
                let _ = tokio::time::timeout(PROBE_TIMEOUT, probe.finished()).await;
                probers.end(probe, monotonic()).0
            }
            None => Vec::new(),
        };
        let doorbell = HubDoorbell::new(lock)?;
        let actions = state.recover(clock.now(), &probed)?;
        let mut event_loop = Self {
            state,
            doorbell,
            channels,
            job_backlog: VecDeque::new(),
            events: EventLog::default(),
            hosts: HashMap::new(),
            replies: HashMap::new(),
            last_request: 0,
            probers,
            probing: None,
            processes: HashMap::new(),
            watcher: None,
            last_activity: monotonic(),
            longest_turn: Duration::ZERO,
            only_popups_since: None,
            stopping: false,
            was_idle: false,
            clock,
        };
        event_loop.perform(actions);
        Ok(event_loop)
    }

    /// Runs until the hub is told to stop, has been idle for a while, or no longer owns its home.
    pub(crate) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> LoopExit {
        let mut woken = monotonic();
        while !self.stopping {
            let now = monotonic();
            if self.probing.as_ref().is_some_and(|probing| probing.probe.deadline <= now) {
                self.finish_probe();
            }
            if self.state.has_work(now) {
                self.read_journal();
            }
            let actions = self.state.commit(self.clock.now());
            self.perform(actions);
            let actions = self.state.maintain(self.clock.now());
            self.perform(actions);
            self.longest_turn = self.longest_turn.max(monotonic().saturating_sub(woken));
            if let Some(why) = self.state.unusable_files() {
                self.channels.log.line(format!("{why}: ending, and the next hub goes on"));
                return LoopExit { unusable: true, ..self.exit() };
            }
            let wakeup = self.next(&mut inputs).await;
            woken = monotonic();
            // Checked before a file of the home is used: another hub may own the files that are there now.
            if self.doorbell.is_gone() {
                self.channels.log.line("the hub's home or doorbell was removed: ending without writing");
                return self.exit();
            }
            match wakeup {
                Wakeup::Input(input) => {
                    self.take(input);
                    for _ in 0..MAX_TOGETHER {
                        match inputs.try_recv() {
                            Ok(input) => self.take(input),
                            Err(_) => break,
                        }
                    }
                }
                Wakeup::Doorbell => {
                    self.last_activity = monotonic();
                    self.state.schedule_read();
                }
                Wakeup::Room => self.flush_jobs(),
                Wakeup::Probed => self.finish_probe(),
                // Deadlines must not wait until a long journal is read.
                Wakeup::More if self.wait().is_zero() => self.tick(),
                Wakeup::DoorbellChanged | Wakeup::More => {}
                Wakeup::Deadline => self.tick(),
                Wakeup::Closed => break,
            }
        }
        let actions = self.state.end(self.clock.now());
        self.perform(actions);
        self.exit()
    }

    fn exit(self) -> LoopExit {
        let position = self.state.position().clone();
        LoopExit { lock: self.doorbell.into_lock(), position, was_idle: self.was_idle, unusable: false }
    }

    async fn next(&mut self, inputs: &mut mpsc::Receiver<Input>) -> Wakeup {
        let (more, wait) = (self.state.can_read(monotonic()), self.wait());
        let probing = self.probing.as_mut();
        let probed = async {
            match probing {
                Some(probing) => probing.probe.finished().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            input = inputs.recv() => input.map_or(Wakeup::Closed, Wakeup::Input),
            () = self.doorbell.rang() => Wakeup::Doorbell,
            () = self.doorbell.changed() => Wakeup::DoorbellChanged,
            _ = self.channels.jobs.reserve(), if !self.job_backlog.is_empty() => Wakeup::Room,
            () = probed => Wakeup::Probed,
            // Ready only at the second poll, so everything else that is ready comes first.
            () = tokio::task::yield_now(), if more => Wakeup::More,
            () = tokio::time::sleep(wait), if !more => Wakeup::Deadline,
        }
    }

    /// Returns the time until the next deadline, apart from reading the journal.
    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let idle = self.last_activity + self.channels.idle_after;
        let probe = self.probing.as_ref().map(|probing| probing.probe.deadline);
        let next = [Some(idle), self.state.next_deadline(now), probe].into_iter().flatten().min();
        next.unwrap_or(idle).saturating_sub(now.mono)
    }

    fn take(&mut self, input: Input) {
        self.last_activity = monotonic();
        self.only_popups_since = None;
        match input {
            Input::Event(LoopEvent::Stop) => self.stopping = true,
            Input::Event(event) => {
                if let LoopEvent::HostGone(host) = &event {
                    self.hosts.remove(host);
                }
                self.handle(event);
            }
            Input::Request { request, reply } => {
                self.last_request += 1;
                let id = RequestId(self.last_request);
                self.replies.insert(id, reply);
                self.handle(LoopEvent::Request { id, request });
            }
        }
    }

    fn handle(&mut self, event: LoopEvent) {
        let actions = self.state.handle(self.clock.now(), event);
        self.perform(actions);
    }

    fn tick(&mut self) {
        let now = monotonic();
        let actions = self.state.tick(self.clock.now());
        self.perform(actions);
        if now.saturating_sub(self.last_activity) < self.channels.idle_after {
            return;
        }
        let is_idle = self.channels.clients.load(Ordering::Relaxed) == 0 && self.state.is_idle(now);
        if is_idle && !self.waits_for_clicks(now) {
            self.channels.log.line("nothing to do for a while: ending");
            (self.stopping, self.was_idle) = (true, true);
        } else {
            self.last_activity = now;
        }
    }

    /// Returns true if a popup may be on the screen whose click would be lost if the hub ended.
    fn waits_for_clicks(&mut self, now: Duration) -> bool {
        if self.channels.desktop.popup_count() == 0 {
            return false;
        }
        let since = *self.only_popups_since.get_or_insert(now);
        now.saturating_sub(since) < WAIT_FOR_CLICKS
    }

    fn read_journal(&mut self) {
        // Drained before the journal is read: a later message rings again.
        let actions = match self.doorbell.drain(self.state.home()) {
            Ok(rang) => self.state.read_journal(self.clock.now(), rang),
            Err(error) => self.state.doorbell_failed(self.clock.now(), &error),
        };
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Execute(job) => self.job_backlog.push_back(job),
                Action::Answer { id, answer, behind } => self.answer(id, answer, behind),
                Action::Tell(SentOrder { host, order }) => self.tell(host, &order),
                Action::Publish { unix_ms, event, data } => self.events.add(unix_ms, event, &data),
                Action::Probe(targets) => self.start_probe(targets, Vec::new(), monotonic()),
                Action::WatchProcess { agent, pid, started } => {
                    self.tell_of_end(agent, async move { process::ended(pid, started).await });
                }
                Action::UnwatchProcess(agent) => {
                    if let Some(task) = self.processes.remove(&agent) {
                        task.abort();
                    }
                }
                Action::RetryProcessEnd(agent) => self.tell_of_end(agent, tokio::time::sleep(RETRY_AFTER)),
                Action::SetWatches(watches) => {
                    self.watcher = match (self.watcher.take(), self.channels.inputs.upgrade()) {
                        (Some(current), _) if !watches.is_empty() => Some(current.set(watches)),
                        (None, Some(inputs)) if !watches.is_empty() => Some(Watcher::begin(watches, inputs)),
                        _ => None,
                    };
                }
                Action::Log(line) => self.channels.log.line(line),
            }
        }
        self.flush_jobs();
    }

    /// Sends jobs to the executor until its queue is full. The rest follows when there is room.
    fn flush_jobs(&mut self) {
        while !self.job_backlog.is_empty()
            && let Ok(permit) = self.channels.jobs.try_reserve()
            && let Some(job) = self.job_backlog.pop_front()
        {
            permit.send(job);
        }
    }

    fn answer(&mut self, id: RequestId, answer: Answer, behind: u64) {
        let Some(sender) = self.replies.remove(&id) else { return };
        // The client sees the closed connection and asks the next hub.
        if self.state.unusable_files().is_some() {
            return;
        }
        let reply = match answer {
            Answer::Value(result) => Reply::Result(result),
            Answer::Notifications(rows) => Reply::Notifications { rows, clock: self.clock.clone() },
            Answer::Status(mut status) => {
                status["followers"] = json!(self.events.followers());
                status["longest_turn_us"] = json!(std::mem::take(&mut self.longest_turn).as_micros());
                Reply::Result(Ok(status))
            }
            Answer::Environment { environment, offered } => Reply::Environment { environment, offered },
            Answer::Attach { host, orders } => {
                let (sender, receiver) = mpsc::channel(MAX_ORDERS);
                self.hosts.insert(host, sender);
                for order in &orders {
                    self.tell(host, order);
                }
                Reply::Attached(receiver)
            }
            Answer::Subscribe(filter) => match self.events.subscribe(filter) {
                Some(subscription) => Reply::Subscribed(subscription),
                None => Reply::Result(Err(ApiError::new("busy", "too many follow already"))),
            },
        };
        // A client that has gone needs no answer.
        let _ = sender.send(Answered { reply, behind });
    }

    /// Sends an order to a host. Never waits: a host that does not keep up is disconnected.
    fn tell(&mut self, host: ConnectionId, order: &HostOrder) {
        if self.hosts.get(&host).is_some_and(|sender| sender.try_send(json_line(order)).is_err()) {
            self.hosts.remove(&host);
        }
    }

    /// Sends [`LoopEvent::ProcessEnded`] once `end` completes.
    fn tell_of_end(&mut self, agent: Agent, end: impl Future<Output = ()> + Send + 'static) {
        let Some(inputs) = self.channels.inputs.upgrade() else { return };
        let ended = agent.clone();
        let task = tokio::spawn(async move {
            end.await;
            let _ = inputs.send(Input::Event(LoopEvent::ProcessEnded(ended))).await;
        });
        if let Some(before) = self.processes.insert(agent, task) {
            before.abort();
        }
    }

    fn start_probe(
        &mut self,
        targets: impl IntoIterator<Item = ProbeTarget>,
        found: Vec<(ProbeTarget, ProbeResult)>,
        begun: Duration,
    ) {
        match self.probers.send(targets, monotonic()) {
            Some(probe) => self.probing = Some(RepositoryProbe { probe, found, begun }),
            // Nothing is left to probe, or there is no thread for it.
            None => self.handle(LoopEvent::Probed(found)),
        }
    }

    /// Ends the probe, which is finished or past its deadline. Targets behind a directory that hangs are probed again.
    fn finish_probe(&mut self) {
        let Some(RepositoryProbe { probe, mut found, begun }) = self.probing.take() else { return };
        let now = monotonic();
        let (more, left) = self.probers.end(probe, now);
        found.extend(more);
        let again = now < begun + PROBE_AGAIN_FOR;
        self.start_probe(left.into_iter().filter(|_| again), found, begun);
    }
}

/// The lock and its doorbell. Must be created inside a tokio runtime.
pub(crate) struct HubDoorbell {
    lock: AsyncFd<HubLock>,
    /// `None` where the system cannot report the removal. There it is noticed at the next wakeup.
    removal: Option<AsyncFd<Removal>>,
}

impl HubDoorbell {
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; these cannot"
    )]
    pub(crate) fn new(lock: HubLock) -> Result<Self, HubError> {
        let removal = lock.removal().map(AsyncFd::new).transpose().map_err(HubError::Runtime)?;
        Ok(Self { lock: AsyncFd::new(lock).map_err(HubError::Runtime)?, removal })
    }

    /// Waits until the doorbell rings.
    pub(crate) async fn rang(&self) {
        if let Ok(mut rang) = self.lock.readable().await {
            rang.clear_ready();
        }
    }

    /// Waits until the doorbell may have been removed.
    pub(crate) async fn changed(&self) {
        let Some(removal) = &self.removal else { return std::future::pending().await };
        if let Ok(mut told) = removal.readable().await {
            removal.get_ref().drain();
            told.clear_ready();
        }
    }

    /// Clears the wakeups. Returns true if there were any. Must be called before the journal is read.
    pub(crate) fn drain(&self, home: &Home) -> Result<bool, Error> {
        self.lock.get_ref().drain(home)
    }

    /// Returns true if this hub no longer owns the home; see [`HubLock::is_gone`].
    pub(crate) fn is_gone(&self) -> bool {
        self.lock.get_ref().is_gone()
    }

    pub(crate) fn into_lock(self) -> HubLock {
        self.lock.into_inner()
    }
}
