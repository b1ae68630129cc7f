//! The hub's state, and what it does with everything that happens.
//!
//! [`HubState`] has no channel and no runtime, and the time comes with each event: [`HubState::handle`] takes a moment and an
//! event and gives actions. It does touch the person's files (journal, hub store, settings), which may take time;
//! [`TimeSource`] says what the time is then. Each part of the state is a type of its own with private
//! fields; this module and the files below it put the parts together.

mod agent_events;
mod agents;
mod delivery;
mod disk_outage;
mod handlers;
mod hook_programs;
mod hosts;
mod ingest;
mod journal_writes;
mod maintenance;
mod mark_requests;
mod mutes;
mod notifications;
mod orders;
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

use ringer_config::{Config, TitleMark};
use ringer_core::{Event, MessageId, Now};
use ringer_deliver::DesktopEvent;
use ringer_journal::{Error, HubStore, IdSource, Journal, ReadPosition, SpoolLock};

use crate::clock::{Clock, monotonic};
use crate::delivery::setup::{DeliverySetup, search_path};
use crate::delivery::titles::TitleMarkChange;
use crate::message::{Action, DeliveryReport, Job, LoopEvent};
use crate::repository_probe::ProbeResult;
use agents::AgentTracker;
use delivery::queue::Deliveries;
use delivery::title_marks::TitleMarks;
use disk_outage::{DiskOutage, JournalWriteQueue, WRITE_FOR};
use hosts::host_focus::HostFocus;
use hosts::registry::HeardReports;
use hosts::surfaces::Surfaces;
use ingest::Ingest;
pub(crate) use ingest::RETRY_AFTER;
use maintenance::Maintenance;
pub use notifications::MAX_READ;
use notifications::Notifications;
use problems::Problems;
use request_queue::RequestQueue;
use ringer_ipc::host::{Extension, PlugIns};
pub(crate) use settings::Settings;
pub use settings::trust_file;

/// Everything the hub knows.
pub(crate) struct HubState {
    journal: Journal,
    spool_lock: SpoolLock,
    notifications: Notifications,
    ingest: Ingest,
    journal_write_queue: JournalWriteQueue,
    outage: DiskOutage,
    deliveries: Deliveries,
    surfaces: Surfaces,
    title_marks: TitleMarks,
    /// Changes of titles that are tried once the marks are written: a hub that ends in between would leave a mark for ever.
    title_changes: Vec<TitleMarkChange>,
    agents: AgentTracker,
    settings: Settings,
    requests: RequestQueue,
    host_focus: HostFocus,
    heard_reports: HeardReports,
    maintenance: Maintenance,
    problems: Problems,
    /// What the indicators say, by key.
    indicators: BTreeMap<String, String>,
    /// For the times in answers; it is never asked for the present.
    clock: Clock,
    time: TimeSource,
    random: RandomSource,
    /// What is to be done because of the event that is handled now.
    actions: Vec<Action>,
}

/// What the time is after something that may have taken long: waiting for a lock, writing to a disk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeSource {
    /// The system's monotonic clock.
    System,
    /// The moment of the event that is handled: nothing takes time.
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

/// Where random bytes come from.
#[derive(Debug)]
pub(crate) enum RandomSource {
    /// The system.
    System,
    /// A seed, for runs that can be repeated.
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

/// Tells an extension what of the settings is for it.
fn set_extension(extension: &mut dyn Extension, config: &Config) {
    extension.set_one_pane(config.tmux.one_pane);
    // With `always`, the hub marks the titles of all terminals itself.
    extension.set_title_marks(delivery::title_marks::allowed(config) == TitleMark::Auto);
    extension.set_mcp_channels(&config.mcp_channels());
    extension.set_repository_names(&config.repository_names());
    extension.set_relays(&config.relay_links());
}

impl HubState {
    /// Goes on where the last hub stopped; [`HubState::recover`] is called next.
    pub(crate) fn new(
        (mut journal, mut store): (Journal, HubStore),
        spool_lock: SpoolLock,
        settings: Settings,
        mut plug_ins: PlugIns,
        clock: Clock,
        (time, random): (TimeSource, RandomSource),
    ) -> Result<Self, Error> {
        let config = settings.config();
        let position = journal.hub_position(Some(&mut store))?;
        journal.prepare_to_count_lost_events();
        let mut title_marks = TitleMarks::default();
        title_marks.allow(&config);
        plug_ins.extensions.iter_mut().for_each(|extension| set_extension(extension.as_mut(), &config));
        Ok(Self {
            notifications: Notifications::new(store, settings.preferences(&config)),
            ingest: Ingest::new(position),
            journal_write_queue: JournalWriteQueue::default(),
            outage: DiskOutage::default(),
            deliveries: Deliveries::default(),
            surfaces: Surfaces::new(plug_ins.hosts, config.notify.flash),
            title_marks,
            title_changes: Vec::new(),
            agents: AgentTracker::new(plug_ins.extensions, config.agent_timeouts()),
            requests: RequestQueue::default(),
            host_focus: HostFocus::default(),
            heard_reports: HeardReports::default(),
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

    /// Handles what happened. Gives what is to be done about it.
    pub(crate) fn handle(&mut self, now: Now, event: LoopEvent) -> Vec<Action> {
        match event {
            LoopEvent::HookAnswered { ticket, answer } => {
                // The next hook is ordered because of this answer, and may not be trusted any more.
                self.reload_settings(now);
                self.decide(now, Event::HookAnswered { ticket, answer });
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
            LoopEvent::DesktopSession(session) => self.decide(now, Event::Desktop(session)),
            LoopEvent::Desktop(DesktopEvent::Dismissed(id)) => {
                self.decide(now, Event::Mark { id, read: true });
            }
            LoopEvent::Desktop(DesktopEvent::Show(id, _)) => {
                let id = self.meant_by_popup(id);
                self.popup_clicked(now, id);
            }
            LoopEvent::Desktop(DesktopEvent::Answer(id, answer)) => self.popup_answered(now, id, answer),
            LoopEvent::AnswerTried { id, answer, outcome } => self.answer_tried(now, id, &answer, outcome),
            LoopEvent::FocusTried { id, result } => self.focus_tried(now, &id, result),
            LoopEvent::WatchFinished(outcome) => self.watch_finished(now, &outcome),
            LoopEvent::SettingsChanged => self.reload_settings(now),
            LoopEvent::ProcessEnded(agent) => self.process_ended(now, &agent),
            LoopEvent::Probed(results) => self.ingest_probed(now, &results),
            LoopEvent::JournalMaintained(done) => self.journal_maintained(done),
            LoopEvent::Request { id, request } => {
                // What the client sent before is in the journal by now, and counts for the answer.
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

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Now) -> Vec<Action> {
        if self.agents.is_due(now.mono) {
            self.tick_agents(now);
        }
        self.ingest.tick(now.mono);
        if self.journal_write_queue.is_due(now.mono) {
            self.retry_journal_writes(now, WRITE_FOR);
        }
        self.probe_disk(now);
        self.end_late_focus(now);
        self.decide(now, Event::Tick);
        self.take_actions()
    }

    /// There is something new in the journal.
    pub(crate) fn schedule_read(&mut self) {
        self.ingest.schedule();
    }

    /// Whether [`HubState::read_journal`] has something to do now.
    pub(crate) fn has_work(&self, now: Duration) -> bool {
        self.can_read(now) || !self.requests.is_empty()
    }

    /// Whether there is more in the journal, and nothing keeps the hub from reading it; or a mark that was read is not
    /// applied to all of its notifications yet.
    pub(crate) fn can_read(&self, now: Duration) -> bool {
        self.can_continue_marks(now) || (self.ingest.can_read(now) && self.has_room())
    }

    /// Not while the store cannot be written: what is marked would be in memory only.
    fn can_continue_marks(&self, now: Duration) -> bool {
        self.notifications.has_unfinished_marks() && !self.ingest.is_paused(now)
    }

    fn has_room(&self) -> bool {
        self.notifications.has_room() && !self.deliveries.is_full()
    }

    /// When something has to be done, besides reading the journal.
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

    /// Whether the hub may end. An agent that works may get stuck, one that is done may wait for its person, what is snoozed
    /// comes back or escalates, and a person who was away is told what came.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let waits = self.ingest.is_busy()
            || self.can_read(now)
            || self.agents.next_deadline().is_some()
            || self.notifications.engine().has_snoozed()
            || self.notifications.engine().has_escalations()
            || self.notifications.engine().has_digest()
            || !self.journal_write_queue.is_empty()
            || self.agents.extensions_need_hub();
        self.notifications.undecided() == 0 && !waits && self.deliveries.count() == 0
    }

    /// How far the journal is read.
    pub(crate) fn position(&self) -> &ReadPosition {
        self.ingest.position()
    }

    /// The home of this hub.
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

    /// What ids are made of.
    fn ids(&mut self, now: Now) -> IdSource {
        IdSource { unix_ms: now.wall_ms, random: self.random.next() }
    }

    /// Lets the engine decide about an event, and executes what it orders.
    fn decide(&mut self, now: Now, event: Event) {
        let orders = self.notifications.handle(now, event);
        self.execute_orders(now, orders);
    }

    /// Looks whether the settings changed, once a second at most.
    fn check_settings(&mut self, now: Now) {
        if self.settings.take_check(now.mono) {
            self.reload_settings(now);
        }
    }

    /// Reads the person's settings again if they changed.
    fn reload_settings(&mut self, now: Now) {
        let Some(observations) = self.settings.refresh() else { return };
        self.apply_settings(now);
        for observation in observations {
            self.decide(now, Event::Observed(observation));
        }
    }

    fn repository_probed(&mut self, now: Now, scope: &str, result: &ProbeResult) {
        if self.settings.repository_probed(scope, result) {
            self.apply_settings(now);
        }
    }

    fn apply_settings(&mut self, now: Now) {
        let config = self.settings.apply();
        self.notifications.set_preferences(self.settings.preferences(&config));
        self.settings.keep_revisions(&self.notifications.hook_revisions());
        self.surfaces.enable_flash(config.notify.flash);
        self.title_marks.allow(&config);
        self.agents.extensions().for_each(|extension| set_extension(extension.as_mut(), &config));
        self.agents.set_timeouts(config.agent_timeouts());
        self.execute(Job::UpdateSetup(Arc::new(DeliverySetup::of(&config, search_path()))));
        let watches = self.settings.trusted_watches(&config);
        self.act(Action::SetWatches(watches));
        self.log("the settings changed");
        self.check_settings_problems(now);
    }

    /// A delivery is over.
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
