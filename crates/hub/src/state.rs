//! The hub's state, and the handling of all events.
//!
//! [`HubState`] has no channels and no runtime. [`HubState::handle`] takes the current time and an event, and returns actions. It
//! does use the person's files (journal, hub store, settings), which may take time; [`TimeSource`] says what time it is
//! afterwards. Each part of the state is a type with private fields; this module and its submodules put the parts together.

mod agent_events;
mod agents;
mod delivery;
mod disk_outage;
mod hook_programs;
mod hosts;
mod ingest;
mod journal_writes;
mod maintenance;
pub(crate) mod methods;
mod notifications;
mod orders;
mod parts;
mod problem_checks;
mod problems;
mod reading;
mod recovery;
mod repairs;
mod request_queue;
mod settings;
#[cfg(test)]
mod simulation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringer_core::attention::NotificationStore;
use ringer_core::{Event, MessageId, Now};
use ringer_deliver::DesktopEvent;
use ringer_journal::{Error, HubStore, IdSource, Journal, ReadPosition, SpoolLock};

use crate::clock::{Clock, monotonic};
use crate::delivery::setup::{DeliverySetup, search_path};
use crate::delivery::titles::TitleMarkChange;
use crate::message::{Action, Answer, DeliveryReport, Job, LoopEvent};
use crate::repository_probe::ProbeResult;
use agents::AgentTracker;
use delivery::queue::Deliveries;
use delivery::title_marks::TitleMarks;
use disk_outage::{DiskOutage, JournalWriteQueue, WRITE_FOR};
use hosts::host_focus::HostFocus;
use hosts::registry::RecentReports;
use hosts::surfaces::Surfaces;
use ingest::Ingest;
pub(crate) use ingest::RETRY_AFTER;
use maintenance::Maintenance;
pub use notifications::MAX_READ;
use notifications::Notifications;
use parts::Parts;
use problems::Problems;
use request_queue::RequestQueue;
use ringer_ipc::part::{Part, PartEvent};
pub(crate) use settings::Settings;
pub use settings::trust_file;

/// The complete state of the hub.
pub(crate) struct HubState {
    journal: Journal,
    /// `None` in a command that stands in for a hub; see [`HubState::is_offline`].
    spool_lock: Option<SpoolLock>,
    notifications: Notifications,
    ingest: Ingest,
    journal_write_queue: JournalWriteQueue,
    outage: DiskOutage,
    deliveries: Deliveries,
    surfaces: Surfaces,
    title_marks: TitleMarks,
    /// Title changes that start once the marks are stored. A hub that ended in between would leave a mark forever.
    title_changes: Vec<TitleMarkChange>,
    agents: AgentTracker,
    parts: Parts,
    settings: Settings,
    requests: RequestQueue<Finish>,
    host_focus: HostFocus,
    recent_reports: RecentReports,
    /// Hosts keep reports until the journal can be written.
    has_refused_reports: bool,
    maintenance: Maintenance,
    problems: Problems,
    /// The texts of the indicators, by key.
    indicators: BTreeMap<String, String>,
    /// Formats the times in answers. Never used to read the current time.
    clock: Clock,
    time: TimeSource,
    random: RandomSource,
    /// The actions of the event that is being handled.
    actions: Vec<Action>,
}

/// The clock to read after an operation that may have taken long, such as waiting for a lock or writing to a disk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeSource {
    /// The system's monotonic clock.
    System,
    /// The time of the current event: nothing takes time.
    #[cfg(test)]
    Simulated,
}

impl TimeSource {
    fn mono(self, now: Now) -> Duration {
        match self {
            Self::System => monotonic().max(now.mono),
            #[cfg(test)]
            Self::Simulated => now.mono,
        }
    }
}

/// The source of random bytes.
#[derive(Debug)]
pub(crate) enum RandomSource {
    /// The system's.
    System,
    /// A seed, for reproducible runs.
    #[cfg(test)]
    Seeded(u64),
}

impl RandomSource {
    fn next(&mut self) -> [u8; 16] {
        match self {
            Self::System => IdSource::now().random,
            #[cfg(test)]
            Self::Seeded(count) => {
                *count += 1;
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&count.to_be_bytes());
                bytes[8..].copy_from_slice(&count.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
                bytes
            }
        }
    }
}

/// Makes the answer to a request whose messages have been read.
type Finish = Box<dyn FnOnce(&HubState, Now) -> Answer + Send>;

impl HubState {
    /// Continues where the last hub stopped. [`HubState::recover`] must be called next.
    pub(crate) fn new(
        (mut journal, mut store): (Journal, HubStore),
        spool_lock: Option<SpoolLock>,
        settings: Settings,
        parts: Vec<Box<dyn Part>>,
        clock: Clock,
        (time, random): (TimeSource, RandomSource),
    ) -> Result<Self, Error> {
        let config = settings.config();
        let position = journal.hub_position(Some(&mut store))?;
        if spool_lock.is_some() {
            journal.prepare_to_count_lost_events();
        }
        let mut title_marks = TitleMarks::default();
        title_marks.allow(config.title_mark());
        let mut parts = Parts::new(parts);
        parts.tell(PartEvent::Settings(&config));
        Ok(Self {
            notifications: Notifications::new(store, settings.preferences(&config)),
            ingest: Ingest::new(position),
            journal_write_queue: JournalWriteQueue::default(),
            outage: DiskOutage::default(),
            deliveries: Deliveries::default(),
            surfaces: Surfaces::new(config.notify.flash),
            title_marks,
            title_changes: Vec::new(),
            agents: AgentTracker::new(config.agent_timeouts()),
            parts,
            requests: RequestQueue::new(),
            host_focus: HostFocus::default(),
            recent_reports: RecentReports::default(),
            has_refused_reports: false,
            maintenance: Maintenance::new(),
            problems: Problems::default(),
            indicators: BTreeMap::new(),
            journal,
            spool_lock,
            settings,
            clock,
            time,
            random,
            actions: Vec::new(),
        })
    }

    /// Handles an event. Returns the actions to perform.
    pub(crate) fn handle(&mut self, now: Now, event: LoopEvent) -> Vec<Action> {
        match event {
            LoopEvent::HookAnswered { ticket, answer } => {
                // The answer may order the next hook, which may no longer be trusted.
                self.reload_settings(now);
                self.feed_engine(now, Event::HookAnswered { ticket, answer });
                self.ingest.schedule();
            }
            LoopEvent::Delivered { id, channel, report } => self.delivered(now, &id, channel, report),
            LoopEvent::PopupGone(id) => self.notifications.writes().popup_gone(&id),
            LoopEvent::TitleTried { surface, outcome } => {
                let step = self.title_marks.tried(&surface, outcome);
                self.change_title(step);
            }
            LoopEvent::RetryTitle(surface) => {
                let step = self.title_marks.next_step(&surface);
                self.change_title(step);
            }
            LoopEvent::DesktopSession(session) => self.feed_engine(now, Event::Desktop(session)),
            LoopEvent::Desktop(DesktopEvent::Dismissed(id)) => {
                self.feed_engine(now, Event::Mark { id, read: true });
            }
            LoopEvent::Desktop(DesktopEvent::Show(id, _)) => {
                let id = self.meant_by_popup(id);
                self.popup_clicked(now, id);
            }
            LoopEvent::Desktop(DesktopEvent::Answer(id, answer)) => self.popup_answered(now, id, answer),
            LoopEvent::AnswerTried { id, answer, outcome } => self.answer_tried(now, id, &answer, outcome),
            LoopEvent::PaneFocused { waiter, result } => self.answer_focus_waiters(now, [waiter], &result),
            LoopEvent::WatchFinished(outcome) => self.watch_finished(now, &outcome),
            LoopEvent::SettingsChanged => self.reload_settings(now),
            LoopEvent::ProcessEnded(agent) => self.process_ended(now, &agent),
            LoopEvent::Probed(results) => self.ingest_probed(now, &results),
            LoopEvent::JournalMaintained(done) => self.journal_maintained(done),
            LoopEvent::Request { id, request } => {
                // Messages that the client sent earlier are in the journal by now, and count for the answer.
                let up_to = self.journal.last_seq().unwrap_or(i64::MAX);
                self.requests.add(id, request, up_to, now.mono);
                self.ingest.schedule();
            }
            LoopEvent::HostGone(connection) => {
                self.end_focus_of(now, connection);
                let after = self.surfaces.detach(connection);
                self.after_host(now, after);
            }
            LoopEvent::Desktop(_) | LoopEvent::Stop => {}
        }
        self.take_actions()
    }

    /// Handles deadlines that have passed.
    pub(crate) fn tick(&mut self, now: Now) -> Vec<Action> {
        if self.agents.is_due(now.mono) && !self.is_offline() {
            self.tick_agents(now);
        }
        self.ingest.tick(now.mono);
        if self.journal_write_queue.is_due(now.mono) {
            self.retry_journal_writes(now, WRITE_FOR);
        }
        self.probe_disk(now);
        self.end_late_focus(now);
        self.feed_engine(now, Event::Tick);
        self.take_actions()
    }

    /// Records that the journal may have new messages.
    pub(crate) fn schedule_read(&mut self) {
        self.ingest.schedule();
    }

    /// Returns true if [`HubState::read_journal`] has something to do now.
    pub(crate) fn has_work(&self, now: Duration) -> bool {
        self.can_read(now) || !self.requests.is_empty()
    }

    /// Returns true if the journal has more messages and nothing keeps the hub from reading them, or if a mark that was read is
    /// not yet applied to all its notifications.
    pub(crate) fn can_read(&self, now: Duration) -> bool {
        self.can_continue_marks(now) || (self.ingest.can_read(now) && self.has_room())
    }

    /// Returns false while the store cannot be written, because the marks would be in memory only.
    fn can_continue_marks(&self, now: Duration) -> bool {
        self.notifications.has_unfinished_marks() && !self.ingest.is_paused(now)
    }

    fn has_room(&self) -> bool {
        self.is_offline() || (self.notifications.has_room() && !self.deliveries.is_full())
    }

    /// Returns the next deadline, apart from reading the journal.
    pub(crate) fn next_deadline(&self, now: Now) -> Option<Duration> {
        [
            self.notifications.next_deadline(now),
            self.ingest.next_deadline(),
            self.journal_write_queue.next_deadline(),
            self.outage.next_deadline(),
            self.requests.next_deadline(),
            self.host_focus.next_deadline(),
            self.agents.next_deadline(),
            self.maintenance.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns true if the hub may end. A working agent may get stuck, a finished one may wait for its person, a snoozed
    /// notification returns or escalates, and a person who was away gets a digest.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let waits = self.ingest.is_busy()
            || self.can_read(now)
            || self.agents.next_deadline().is_some()
            || self.notifications.engine().is_waiting()
            || !self.journal_write_queue.is_empty()
            || self.parts.need_hub();
        self.notifications.undecided() == 0 && !waits && self.deliveries.count() == 0
    }

    /// Returns true in a command that stands in for a hub. It reads what the last hub stored and what came since, and appends the
    /// person's marks. It writes nothing else: whatever it decides, the next hub decides again.
    fn is_offline(&self) -> bool {
        self.spool_lock.is_none()
    }

    /// Skips all messages but the newest.
    pub(crate) fn skip_to_newest(&mut self, most: i64) {
        let from = self.journal.last_seq().unwrap_or(0).saturating_sub(most);
        self.ingest.skip_to(from);
    }

    /// The notifications in memory.
    pub(crate) fn notifications(&self) -> &NotificationStore {
        self.notifications.list()
    }

    /// Returns the position in the journal.
    pub(crate) fn position(&self) -> &ReadPosition {
        self.ingest.position()
    }

    pub(crate) fn home(&self) -> &ringer_journal::Home {
        self.journal.home()
    }

    fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn execute(&mut self, job: Job) {
        self.act(Action::Execute(job));
    }

    fn log(&mut self, line: impl Into<String>) {
        self.act(Action::Log(line.into()));
    }

    /// The source of a new id.
    fn ids(&mut self, now: Now) -> IdSource {
        IdSource { unix_ms: now.wall_ms, random: self.random.next() }
    }

    /// Lets the engine decide about an event, and executes its orders.
    fn feed_engine(&mut self, now: Now, event: Event) {
        let orders = self.notifications.handle(now, event);
        self.execute_orders(now, orders);
    }

    /// Checks for changed settings, at most once a second.
    fn check_settings(&mut self, now: Now) {
        if self.settings.take_check(now.mono) {
            self.reload_settings(now);
        }
    }

    /// Reloads the person's settings if they changed.
    fn reload_settings(&mut self, now: Now) {
        let Some(observations) = self.settings.refresh() else { return };
        self.apply_settings(now);
        for observation in observations {
            self.feed_engine(now, Event::Observed(observation));
        }
    }

    fn repository_probed(&mut self, now: Now, scope: &str, result: &ProbeResult) {
        if self.settings.repository_probed(scope, result) {
            self.apply_settings(now);
        }
    }

    fn apply_settings(&mut self, now: Now) {
        let config = self.settings.apply();
        let orders = self.notifications.set_preferences(now, self.settings.preferences(&config));
        self.settings.keep_revisions(&self.notifications.hook_revisions());
        self.surfaces.enable_flash(config.notify.flash);
        self.title_marks.allow(config.title_mark());
        self.parts.tell(PartEvent::Settings(&config));
        self.agents.set_timeouts(config.agent_timeouts());
        self.execute(Job::UpdateSetup(Arc::new(DeliverySetup::of(&config, search_path()))));
        let watches = self.settings.trusted_watches(&config);
        self.act(Action::SetWatches(watches));
        self.log("the settings changed");
        self.execute_orders(now, orders);
        self.check_settings_problems(now);
    }

    /// Handles the end of a delivery.
    fn delivered(
        &mut self,
        now: Now,
        id: &MessageId,
        channel: ringer_core::policy::DeliveryChannel,
        report: DeliveryReport,
    ) {
        self.deliveries.finish(id, channel);
        self.record_delivery(now, id, channel, report);
        self.ingest.schedule();
    }
}
