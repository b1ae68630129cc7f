//! The loop: one thread owns the engine and the journal, and takes everything that happens in turn.
//!
//! It reads from its cursor (`feed`), lets the engine decide, writes down what was decided in one transaction, and only then
//! lets anything go out. Nothing it does can hang on anybody but the journal.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringer_core::{Agent, AgentTimeouts, Engine, Event};
use ringer_deliver::{Desktop, DesktopEvent};
use ringer_journal::{HubLock, HubStore, Journal, ReadPosition};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::book::{Book, flag};
use crate::clock::{Clock, monotonic};
use crate::events::EventLog;
use crate::feed::{Held, Waiting};
use crate::hook_programs::HookPrograms;
use crate::host::{Host, Service};
use crate::housekeeping::House;
use crate::input::Input;
use crate::log::Log;
use crate::perform::{Job, MAX_UNDER_WAY};
use crate::requests::Asked;
use crate::run::{Plugs, RunError};
use crate::scout::Scouts;
use crate::session_bus::Callers;
use crate::settings::Settings;
use crate::signals::Followed;
use crate::titles::TitleMarks;
use crate::watch::Watcher;

/// Messages taken at once: one transaction for all of them.
pub(crate) const BATCH: usize = 64;
/// Notifications that may wait for hooks. The others stay in the journal until there is room.
const MAX_UNDECIDED: usize = 256;
/// Read notifications that are kept in memory; older ones are in the journal.
pub(crate) const MAX_READ: usize = 10_000;
/// How long to wait when the journal cannot be written.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a hub stays without anything to do.
pub(crate) const IDLE_AFTER: Duration = Duration::from_mins(10);

/// The loop's state.
#[expect(clippy::struct_excessive_bools, reason = "each says one thing, and they do not exclude each other")]
pub(crate) struct Dispatcher {
    pub(crate) journal: Journal,
    pub(crate) memory: HubStore,
    pub(crate) engine: Engine,
    pub(crate) events: EventLog,
    pub(crate) hosts: Vec<Box<dyn Host>>,
    pub(crate) services: Vec<Box<dyn Service>>,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) hook_programs: HookPrograms,
    pub(crate) log: Log,
    pub(crate) book: Book,
    pub(crate) bell: AsyncFd<HubLock>,
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) inputs: mpsc::WeakSender<Input>,
    pub(crate) under_way: Arc<AtomicUsize>,
    pub(crate) watcher: Option<Watcher>,
    /// Everything up to here was taken.
    pub(crate) taken: ReadPosition,
    /// There may be more in the journal.
    pub(crate) hungry: bool,
    pub(crate) scouts: Scouts,
    /// What was taken and has not come in yet.
    pub(crate) held: Option<Held>,
    /// The requests that have not been answered yet.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Jobs that the performer has not taken yet. As many as were just withdrawn or decided; it takes them at once.
    pub(crate) unsent: VecDeque<Job>,
    /// When an agent's time comes.
    pub(crate) agents_due: Option<Duration>,
    pub(crate) looked: Duration,
    /// With the next batch, all repositories that are known are looked at.
    pub(crate) look_at_known: bool,
    /// How often other settings were applied: the revision of those that hold.
    pub(crate) applied: u64,
    pub(crate) house: House,
    pub(crate) titles: TitleMarks,
    pub(crate) last_busy: Duration,
    pub(crate) idle_after: Duration,
    /// Until then the journal is left alone.
    pub(crate) retry_at: Option<Duration>,
    /// When what hooks spooled is looked at again: there was more, or it could not be taken in.
    pub(crate) spool_retry_at: Option<Duration>,
    pub(crate) added: usize,
    pub(crate) flash: bool,
    pub(crate) patience: AgentTimeouts,
    /// The agents that have not gone.
    pub(crate) followed: HashMap<Agent, Followed>,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) desktop: Desktop,
    pub(crate) callers: Callers,
    /// Since when nothing but a popup keeps the hub from ending.
    pub(crate) only_popups_since: Option<Duration>,
    pub(crate) stopping: bool,
    pub(crate) by_itself: bool,
}

/// What is left of a loop. Whoever has the bell is the hub: it goes last.
pub(crate) struct Ended {
    pub(crate) bell: HubLock,
    /// How far the journal was taken.
    pub(crate) taken: ReadPosition,
    /// Nobody told it to end.
    pub(crate) by_itself: bool,
}

/// What happened next.
enum Next {
    /// Somebody wants something.
    Input(Input),
    /// There is something in the journal.
    Rang,
    /// The performer takes jobs again.
    Room,
    /// Whoever looks at repositories is back.
    Scouted,
    /// The journal can be read on at once.
    More,
    /// It is time for something.
    Time,
    /// Nobody can want anything any more.
    Alone,
}

/// What a loop is made of.
pub(crate) struct Parts {
    pub(crate) journal: Journal,
    pub(crate) memory: HubStore,
    pub(crate) bell: HubLock,
    pub(crate) settings: Settings,
    pub(crate) plugs: Plugs,
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) inputs: mpsc::WeakSender<Input>,
    pub(crate) under_way: Arc<AtomicUsize>,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) desktop: Desktop,
    pub(crate) log: Log,
    pub(crate) idle_after: Duration,
}

impl Dispatcher {
    /// Goes on where the last hub stopped. Inside a tokio runtime.
    pub(crate) async fn begin(parts: Parts) -> Result<Self, RunError> {
        let (mut journal, mut memory) = (parts.journal, parts.memory);
        let clock = Clock::local();
        let config = parts.settings.config();
        let engine = Engine::new(parts.settings.preferences(&config, 0), false);
        let mut hook_programs = HookPrograms::default();
        hook_programs.add(0, &config, parts.settings.trusted());
        let taken = journal.hub_position(Some(&mut memory))?;
        #[expect(
            deprecated,
            reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
        )]
        let bell = AsyncFd::new(parts.bell).map_err(RunError::Runtime)?;
        let now = clock.now().mono;
        let scouts = Scouts::new(parts.settings.home(), parts.log.clone());
        let mut dispatcher = Self {
            engine,
            events: EventLog::default(),
            hosts: parts.plugs.hosts,
            services: parts.plugs.services,
            followed: HashMap::new(),
            settings: parts.settings,
            hook_programs,
            log: parts.log,
            book: Book::default(),
            bell,
            jobs: parts.jobs,
            inputs: parts.inputs,
            under_way: parts.under_way,
            watcher: None,
            taken,
            hungry: true,
            scouts,
            held: None,
            waiting: VecDeque::new(),
            unsent: VecDeque::new(),
            agents_due: None,
            looked: now,
            look_at_known: false,
            applied: 0,
            house: House::default(),
            titles: TitleMarks::default(),
            last_busy: now,
            idle_after: parts.idle_after,
            retry_at: None,
            spool_retry_at: None,
            added: 0,
            flash: config.notify.flash,
            patience: config.patience(),
            connections: parts.connections,
            desktop: parts.desktop,
            callers: Callers::default(),
            only_popups_since: None,
            stopping: false,
            by_itself: false,
            journal,
            memory,
            clock,
        };
        dispatcher.journal.prepare_to_count_lost_events();
        dispatcher.recover().await?;
        dispatcher.watch(&config.watches);
        if let Some(complaint) = dispatcher.settings.complaint() {
            dispatcher.handle(Event::Observed(complaint));
        }
        Ok(dispatcher)
    }

    /// Takes what happens until there is nothing to do any more.
    pub(crate) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> Ended {
        while !self.stopping {
            let now = monotonic();
            if self.held.as_ref().is_some_and(|held| held.deadline() <= now) {
                self.scouted();
            }
            if self.can_read(now) || !self.waiting.is_empty() {
                self.feed();
            }
            self.settle();
            match self.next(&mut inputs).await {
                Next::Input(input) => {
                    self.take(input);
                    // What came together is taken together: one transaction for all of it.
                    for _ in 0..BATCH {
                        match inputs.try_recv() {
                            Ok(input) => self.take(input),
                            Err(_) => break,
                        }
                    }
                }
                Next::Rang => self.hungry = true,
                Next::Room => self.hand_on(),
                Next::Scouted => self.scouted(),
                // Deadlines pass also while there is much to read.
                Next::More if self.wait(monotonic()).is_zero() => self.tick(),
                Next::More => {}
                Next::Time => self.tick(),
                Next::Alone => break,
            }
        }
        self.settle();
        self.say_where();
        Ended { bell: self.bell.into_inner(), taken: self.taken, by_itself: self.by_itself }
    }

    async fn next(&mut self, inputs: &mut mpsc::Receiver<Input>) -> Next {
        let now = monotonic();
        let (more, wait) = (self.can_read(now), self.wait(now));
        let held = self.held.as_mut();
        let scouted = async {
            match held {
                Some(held) => held.scouted().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            input = inputs.recv() => input.map_or(Next::Alone, Next::Input),
            rang = self.bell.readable() => {
                if let Ok(mut rang) = rang {
                    rang.clear_ready();
                }
                Next::Rang
            }
            _ = self.jobs.reserve(), if !self.unsent.is_empty() => Next::Room,
            () = scouted => Next::Scouted,
            // Ready only when it is polled again, so everything else that is ready comes first.
            () = tokio::task::yield_now(), if more => Next::More,
            () = tokio::time::sleep(wait), if !more => Next::Time,
        }
    }

    /// Whether there is more in the journal, and nothing keeps us from reading it.
    fn can_read(&self, now: Duration) -> bool {
        self.held.is_none() && self.hungry && self.has_room() && self.retry_at.is_none_or(|at| at <= now)
    }

    /// How long nothing has to be done, besides reading the journal.
    fn wait(&self, now: Duration) -> Duration {
        let idle = self.last_busy + self.idle_after;
        let engine = self.engine.next_deadline(now);
        let scout = self.held.as_ref().map(Held::deadline);
        let answer = self.waiting.front().map(Waiting::deadline);
        [Some(idle), engine, scout, answer, self.agents_due, self.retry_at, self.spool_retry_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(idle)
            .saturating_sub(now)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.engine.undecided() < MAX_UNDECIDED && self.under_way.load(Ordering::Relaxed) < MAX_UNDER_WAY
    }

    fn take(&mut self, input: Input) {
        self.last_busy = monotonic();
        self.only_popups_since = None;
        match input {
            Input::Answered { ticket, answer } => {
                // The next hook is ordered by it, and may be no longer trusted.
                self.reload();
                self.handle(Event::HookAnswered { ticket, answer });
                self.hungry = true;
            }
            Input::Delivered { id, way, report } => self.delivered(id, way, report),
            Input::Withdrawn(id) => self.book.gone(&id),
            Input::TitleTried { surface, outcome } => self.title_tried(&surface, outcome),
            Input::RetryTitle(surface) => self.retry_title(&surface),
            Input::Desktop(DesktopEvent::Dismissed(id)) => {
                self.handle(Event::Mark { id, read: true });
            }
            Input::Desktop(DesktopEvent::Show(id, _)) => self.show(id),
            Input::Shown { id, went } => self.shown(&id, went),
            Input::Desktop(_) => {}
            Input::Watched(outcome) => self.watched(&outcome),
            Input::ProcessEnded(agent) => self.agent_ended(&agent),
            Input::Request { method, params, reply } => {
                self.ask(Asked::Call { method, params }, reply);
            }
            Input::Stop => self.stopping = true,
        }
    }

    /// Lets the engine handle an event, and does what it orders.
    pub(crate) fn handle(&mut self, event: Event) {
        let now = self.clock.now();
        let orders = self.engine.handle(now, event);
        self.carry_out(now, orders);
    }

    /// Writes down what happened. Then, and only then, does anything go out.
    pub(crate) fn settle(&mut self) {
        self.book.set_undecided(self.engine.undecided_ids());
        let reasons = self.engine.attention().reasons().map(|(reason, place)| flag(reason, &place));
        self.book.set_flags(reasons.chain(self.titles.flags()));
        if self.book.settlement().is_empty() || self.retry_at.is_some_and(|at| at > monotonic()) {
            return;
        }
        match self.memory.commit(self.book.settlement()) {
            Ok(()) => {
                self.retry_at = None;
                for delivery in self.book.written() {
                    self.send(delivery);
                }
            }
            Err(error) => {
                self.log.line(format!("cannot write down what happened: {error}"));
                self.retry_at = Some(monotonic() + RETRY_AFTER);
            }
        }
    }

    /// There is something new in the journal.
    pub(crate) fn wake(&mut self) {
        self.hungry = true;
    }

    /// How many deliveries are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// How far the journal was taken.
    pub(crate) fn cursor(&self) -> i64 {
        self.taken.cursor.seq
    }
}

/// Where programs are looked for.
pub(crate) fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
