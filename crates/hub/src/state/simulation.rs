//! Random runs of the hub's state on a real journal and a real hub store: messages, requests, settings, hook answers, failing
//! deliveries, and restarts after any step. `RINGER_HUB_SEEDS=N` runs N seeds, `RINGER_HUB_SEED=N` repeats one.
//!
//! Invariants:
//! - A delivery is stored as started before it starts.
//! - No message stays undecided.
//! - Every title mark that was set is removed, once.
//! - Requests are answered once and in order.
//! - Only trusted programs are ordered.
//! - Clearing everything removes all messages sent before it and nothing else, even if the hub ends in the middle.
//! - A snoozed notification returns once, or is resolved before.
//! - Nothing muted is delivered.
//! - A notification that can wait makes no popup while the person is away, and the digest follows when they return.

mod away;
mod ending;
mod maintenance;
mod quiet;
mod settings;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringer_config::Environment;
use ringer_core::attention::digest_id;
use ringer_core::engine::Ticket;
use ringer_core::message::{MessageOrigin, SurfaceId};
use ringer_core::policy::{DeliveryChannel, HookAnswer};
use ringer_core::time::TimeOfDay;
use ringer_core::{Draft, Kind, MessageId, Now, Scope, Sender};
use ringer_journal::{Home, HubStore, IdSource, Journal, SpoolLock};
use serde_json::json;
use tempfile::TempDir;
use test_support::Random;

use super::{HubState, RandomSource, Settings, TimeSource, trust_file};
use crate::clock::Clock;
use crate::hosts::protocol::ConnectionId;
use crate::message::{Action, Answer, DeliveryReport, Job, LoopEvent, Request, RequestId};
use crate::repository_probe::{ProbeResult, ProbeTarget, RepositorySettings};
use ringer_ipc::part::{TitleOutcome, Unreachable};

const STEPS: u64 = 60;
/// The surfaces, which ring by marks in their titles.
const PANES: [&str; 3] = ["tmux:/tmp/s:1:%0", "tmux:/tmp/s:1:%1", "tmux:/tmp/s:1:%2"];
/// The connection of all requests.
const CLIENT: ConnectionId = ConnectionId(1);

struct Simulation {
    directory: TempDir,
    random: Random,
    now: Duration,
    state: Option<HubState>,
    /// A separate connection, as every writer has one.
    journal: Journal,
    store: HubStore,
    sent: Vec<MessageId>,
    deliveries: Vec<(MessageId, DeliveryChannel)>,
    hooks: Vec<Ticket>,
    titles: VecDeque<(SurfaceId, bool)>,
    /// True for each surface whose title is marked.
    marked: BTreeMap<SurfaceId, bool>,
    asked: VecDeque<RequestId>,
    requests: u64,
    /// The requests to clear everything, with the number of messages sent before each.
    clears: HashMap<RequestId, usize>,
    /// The number of hubs that ended while they applied a mark in pieces.
    ends_in_marks: u64,
    starts: u64,
    changes: u64,
    withdrawn: HashSet<MessageId>,
    is_ending: bool,
    /// True if a message was sent since the doorbell was drained.
    bell: bool,
    pending_probe: Option<Vec<ProbeTarget>>,
    maintained: Option<maintenance::Done>,
    programs: HashMap<String, bool>,
    /// The number of returns of the person that had no digest yet.
    returns: u64,
    /// True if the person is away again.
    has_gone: bool,
    /// How often a digest may be delivered again, because the last hub ended before it knew that the digest was shown, or because
    /// a delivery failed and another channel is left.
    digest_retries: usize,
    digests: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        // In memory if the system has such a directory; nothing here depends on a disk.
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(folder).unwrap();
        let home = Home::new(directory.path().join("home"));
        let journal = Journal::open(&home).unwrap();
        let store = HubStore::open(&home).unwrap();
        let mut simulation = Self {
            directory,
            random: Random::new(seed),
            now: Duration::from_secs(1000),
            state: None,
            journal,
            store,
            sent: Vec::new(),
            deliveries: Vec::new(),
            hooks: Vec::new(),
            titles: VecDeque::new(),
            marked: BTreeMap::new(),
            asked: VecDeque::new(),
            requests: 0,
            clears: HashMap::new(),
            ends_in_marks: 0,
            starts: 0,
            changes: 0,
            withdrawn: HashSet::new(),
            is_ending: false,
            bell: false,
            pending_probe: None,
            maintained: None,
            programs: HashMap::new(),
            returns: 0,
            has_gone: false,
            digest_retries: 0,
            digests: 0,
        };
        fs::create_dir(simulation.repository()).unwrap();
        simulation.change_settings();
        simulation.start();
        simulation
    }

    fn home(&self) -> Home {
        Home::new(self.directory.path().join("home"))
    }

    fn now(&self) -> Now {
        let wall_ms = 1_900_000_000_000 + i64::try_from(self.now.as_millis()).unwrap();
        Now { mono: self.now, wall_ms, local: TimeOfDay::new(12, 0).unwrap() }
    }

    fn repository(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    /// The results of a probe.
    fn probe(&self, targets: Vec<ProbeTarget>) -> Vec<(ProbeTarget, ProbeResult)> {
        let found = RepositorySettings::read(&self.repository(), None).map(Arc::new);
        let found = found.map_or(ProbeResult::NoSettings, ProbeResult::Settings);
        targets.into_iter().map(|target| (target, found.clone())).collect()
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    /// Starts a hub. The last one may have ended in the middle of anything.
    fn start(&mut self) {
        self.starts += 1;
        // Everything in flight was lost with the last hub.
        if self.state.take().is_some_and(|state| state.notifications.has_unfinished_marks()) {
            self.ends_in_marks += 1;
        }
        self.deliveries.clear();
        self.hooks.clear();
        self.asked.clear();
        // A title that was being changed may or may not be marked.
        self.titles.clear();
        (self.pending_probe, self.maintained) = (None, None);
        // The next hub considers a person who was away as still away until it gets a report, or for a while. Then they return.
        (self.returns, self.has_gone) = (1, false);
        self.digest_retries = self.store.outbox().unwrap().iter().filter(|row| row.id == digest_id()).count();
        let home = self.home();
        let files = (Journal::open(&home).unwrap(), HubStore::open(&home).unwrap());
        let lock = SpoolLock::take(&home).unwrap().expect("the last hub has ended");
        let environment = Environment { ringer_config: Some(self.config()), ..Environment::default() };
        let settings = Settings::read(environment, &home);
        let sources = (TimeSource::Simulated, RandomSource::Seeded(self.starts << 32));
        let mut state =
            HubState::new(files, Some(lock), settings, Vec::new(), Clock::local(), sources).unwrap();
        let probed = self.probe(state.recovery_targets().unwrap());
        let actions = state.recover(self.now(), &probed).unwrap();
        self.state = Some(state);
        self.perform(actions);
    }

    fn state(&mut self) -> &mut HubState {
        self.state.as_mut().unwrap()
    }

    fn handle(&mut self, event: LoopEvent) {
        let now = self.now();
        let actions = self.state().handle(now, event);
        self.perform(actions);
    }

    fn send(&mut self) {
        let kind = *self.random.pick(&[Kind::Status, Kind::Complete, Kind::Error]);
        let text = format!("message {}", self.sent.len());
        let mut draft = Draft::new(Scope::global(), Sender::system(), kind, &text).unwrap();
        let surface = *self.random.pick(&[None, Some(PANES[0]), Some(PANES[1]), Some(PANES[2])]);
        let cwd = Some(self.repository().to_string_lossy().into_owned());
        draft.origin = MessageOrigin { surface: surface.map(str::to_owned), cwd, ..MessageOrigin::default() };
        let mut random = [3; 16];
        random[..8].copy_from_slice(&(self.sent.len() as u64).to_be_bytes());
        let ids = IdSource { unix_ms: self.now().wall_ms, random };
        self.sent.push(self.journal.append(&draft, &ids).unwrap());
        self.bell = true;
    }

    fn request(&mut self) {
        let id = self.sent.last().map(|id| id.as_str().to_owned());
        let pane = *self.random.pick(&PANES);
        let (method, params) = match self.random.below(19) {
            0 => ("notification.mark_read", json!({ "all": true })),
            1 => ("notification.clear", json!({ "all": true })),
            2 => ("notification.mark_read", json!({ "id": id })),
            3 => ("notification.mark_unread", json!({ "id": id })),
            4 => ("notification.jump_to_unread", json!({})),
            5 => ("hub.reload", json!({})),
            6 => ("notification.dismiss", json!({ "all_read": true })),
            7 => ("notification.list", json!({ "unread": true })),
            8 => ("host.attach", json!({ "name": "scripted" })),
            9 => ("surface.opened", json!({ "surface_id": pane, "workspace_id": "w" })),
            10 => ("surface.views", json!({ "views": [{ "client": "main", "surface_id": pane }] })),
            11 => ("surface.views", json!({ "views": [] })),
            12 => ("notification.undo", json!({})),
            13 | 14 => ("notification.snooze", json!({ "id": id, "until_unix_ms": self.some_moment() })),
            15..18 => self.quiet_request(),
            _ => ("hub.status", json!({})),
        };
        let clears = method == "notification.clear";
        let request = Request { method: method.to_owned(), params, connection: CLIENT, peer: None };
        self.requests += 1;
        let id = RequestId(self.requests);
        if clears {
            self.clears.insert(id, self.sent.len());
        }
        self.asked.push_back(id);
        self.handle(LoopEvent::Request { id, request });
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(self.random.below(3000));
        if self.state().notifications.has_unfinished_marks() && self.random.one_in(6) {
            return self.start();
        }
        match self.random.below(15) {
            0..=3 => self.send(),
            4 | 5 => self.request(),
            6 => self.change_settings(),
            7 if self.random.one_in(2) => self.finish_delivery(),
            7 => self.answer_probe(),
            8 => self.answer_hook(),
            9 => self.try_title(),
            10 => {
                let now = self.now();
                let actions = self.state().tick(now);
                self.perform(actions);
            }
            11 if self.random.one_in(3) => self.start(),
            12 if self.random.one_in(2) => self.finish_maintenance(),
            12 => self.hear_bell(),
            13 => self.go_or_come(),
            _ => self.turn(),
        }
    }

    /// Lets the loop notice the doorbell, which is drained only when the journal is read.
    fn hear_bell(&mut self) {
        if self.bell {
            self.state().schedule_read();
        }
    }

    fn answer_probe(&mut self) {
        let Some(targets) = self.pending_probe.take() else { return };
        let probed = self.probe(targets);
        self.handle(LoopEvent::Probed(probed));
    }

    /// Runs one turn of the event loop.
    fn turn(&mut self) {
        let now = self.now();
        if self.state().has_work(now.mono) {
            let rang = std::mem::take(&mut self.bell);
            let actions = self.state().read_journal(now, rang);
            self.perform(actions);
        }
        let actions = self.state().commit(now);
        self.perform(actions);
        let actions = self.state().maintain(now);
        self.perform(actions);
    }

    fn finish_delivery(&mut self) {
        let Some((id, channel)) = self.deliveries.pop() else { return };
        let result = if self.random.one_in(3) { Err("it failed".to_owned()) } else { Ok("done".to_owned()) };
        if id == digest_id() {
            // After a failure another channel may follow.
            self.digest_retries = usize::from(result.is_err());
        }
        self.handle(LoopEvent::Delivered { id, channel, report: DeliveryReport::of(result) });
    }

    fn answer_hook(&mut self) {
        let Some(ticket) = self.hooks.pop() else { return };
        self.handle(LoopEvent::HookAnswered { ticket, answer: HookAnswer::Failed("it failed".to_owned()) });
    }

    fn try_title(&mut self) {
        let Some((surface, set)) = self.titles.pop_front() else { return };
        // At the end of a run every terminal answers.
        let chance = if self.is_ending { 1 } else { self.random.below(4) };
        let outcome = match (set, chance) {
            (true, 0) => TitleOutcome::Gone,
            (false, 0) => TitleOutcome::NotYet,
            (true, _) => TitleOutcome::Set,
            (false, _) => TitleOutcome::Gone,
        };
        match (set, outcome) {
            (true, TitleOutcome::Set) => {
                self.marked.insert(surface.clone(), true);
            }
            (false, TitleOutcome::Gone) => {
                self.marked.insert(surface.clone(), false);
            }
            _ => {}
        }
        self.handle(LoopEvent::TitleTried { surface: surface.clone(), outcome });
        if outcome == TitleOutcome::NotYet {
            self.handle(LoopEvent::RetryTitle(surface));
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        // A delivery that is withdrawn in the same turn was stored, and is no longer.
        let withdrawn = actions.iter().filter_map(|action| match action {
            Action::Execute(Job::Withdraw(id)) => Some(id.clone()),
            _ => None,
        });
        self.withdrawn = withdrawn.collect();
        for action in actions {
            match action {
                Action::Execute(job) => self.execute(job),
                Action::Answer { id, answer, behind } => {
                    assert_eq!(self.asked.pop_front(), Some(id), "in order, and once");
                    if let (Some(sent), Answer::Value(Ok(_)), 0) = (self.clears.get(&id), answer, behind) {
                        let state = self.state.as_ref().unwrap();
                        let left = self.sent[..*sent].iter().find(|id| state.notifications.get(id).is_some());
                        assert_eq!(left, None, "it is answered once all are cleared");
                    }
                }
                Action::Probe(targets) => {
                    assert!(self.pending_probe.is_none(), "one batch is probed at a time");
                    self.pending_probe = Some(targets);
                }
                _ => {}
            }
        }
    }

    fn execute(&mut self, job: Job) {
        match job {
            Job::Deliver { delivery, .. } => {
                let written = self.store.outbox().unwrap();
                let is_written = |id: &MessageId, channel: DeliveryChannel| {
                    written.iter().any(|row| row.id == *id && row.channel == channel.as_str())
                };
                let is_withdrawn = self.withdrawn.contains(&delivery.id);
                assert!(
                    is_withdrawn || is_written(&delivery.id, delivery.channel),
                    "{} is not written as started",
                    delivery.id
                );
                if delivery.id == digest_id() {
                    self.check_digest();
                }
                self.deliveries.push((delivery.id, delivery.channel));
            }
            Job::Withdraw(id) => {
                self.deliveries.retain(|(own, channel)| *own != id || *channel == DeliveryChannel::Command);
            }
            Job::Hook { ticket, program, .. } => {
                let argv = program.map(|program| program.argv[0].clone());
                let is_trusted = argv.is_none_or(|argv| self.programs.get(&argv).copied().unwrap_or(false));
                assert!(is_trusted, "a program that was never trusted is ordered");
                self.hooks.push(ticket);
            }
            Job::ChangeTitle(change) => {
                let (surface, set) = (change.surface.clone(), change.is_set());
                let has_mark = self.marked.get(&surface).copied().unwrap_or(false);
                let is_in_flight = self.titles.iter().any(|(own, _)| *own == surface);
                assert!(!is_in_flight, "one change of a title at a time");
                assert!(set || has_mark || self.starts > 1, "a mark is removed that was never set");
                self.titles.push_back((surface, set));
            }
            Job::MaintainJournal { tasks, ids } => self.maintain_journal(tasks, &ids),
            Job::FocusPane { waiter: Some(waiter), .. } => {
                let closed = || Unreachable::gone("it is closed");
                let result = if self.random.one_in(4) { Err(closed()) } else { Ok("tmux".to_owned()) };
                // At once, so that requests are answered in order.
                let withdrawn = std::mem::take(&mut self.withdrawn);
                self.handle(LoopEvent::PaneFocused { waiter, result });
                self.withdrawn = withdrawn;
            }
            Job::UpdateSetup(_) | Job::FocusPane { waiter: None, .. } | Job::Answer { .. } => {}
        }
    }
}

/// Returns the number of hubs that ended while they applied a mark in pieces, and the number of digests.
fn play(seed: u64) -> (u64, u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..STEPS {
        simulation.step();
    }
    simulation.finish();
    (simulation.ends_in_marks, simulation.digests)
}

/// Runs a quarter of the seeds, so that the tests share them.
fn play_quarter(quarter: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("RINGER_HUB_SEED") {
        play(seed);
        return;
    }
    let seeds = number("RINGER_HUB_SEEDS").unwrap_or(2_000);
    let (mut ends_in_marks, mut digests) = (0, 0);
    for seed in (quarter..seeds).step_by(4) {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "seed {seed}: play it again with RINGER_HUB_SEED={seed}");
        let (ends, shown) = played.unwrap_or_default();
        ends_in_marks += ends;
        digests += shown;
    }
    assert!(seeds < 2_000 || digests > 10, "a person comes back and is told: {digests}");
    assert!(seeds < 2_000 || ends_in_marks > 10, "hubs end while they apply a mark: {ends_in_marks}");
}

#[test]
fn what_must_hold_in_the_first_quarter_of_the_runs() {
    play_quarter(0);
}

#[test]
fn what_must_hold_in_the_second_quarter_of_the_runs() {
    play_quarter(1);
}

#[test]
fn what_must_hold_in_the_third_quarter_of_the_runs() {
    play_quarter(2);
}

#[test]
fn what_must_hold_in_the_fourth_quarter_of_the_runs() {
    play_quarter(3);
}
