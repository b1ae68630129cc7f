//! A seeded simulation of the engine: random agents, messages, hooks that are slow, fail or answer late, a person who looks
//! at panes and goes away, clears, restarts from a session, clock jumps, settings and trust that change. After every step the invariants are
//! checked.
//!
//! `cargo xtask simulate --seeds 10000` plays more of them; a failing seed says how to play it again.

#![expect(clippy::expect_used, reason = "a simulation that cannot go on has failed")]

mod away;
mod bursts;
mod looking;
mod picture;
mod quiet;
mod sessions;
mod settings;
mod terminals;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringer_core::attention::{Record, Ring, digest_id};
use ringer_core::engine::{Caller, IncomingMessage, MAX_HOOK_CHAINS, Ticket};
use ringer_core::message::{Place, QuestionId, SurfaceId, Tag, WorkspaceId};
use ringer_core::policy::{DeliveryChannel, HookAnswer, Mute, RateLimit, RuleSettings};
use ringer_core::time::TimeOfDay;
use ringer_core::toast::{Observation, Priority, Toast, source_names};
use ringer_core::{Draft, Engine, Event, Kind, Message, MessageId, Now, Order, Preferences, Scope, Sender};
use serde::Serialize;
use serde::de::DeserializeOwned;
use test_support::Random;

use away::Away;
use bursts::Bursts;
use looking::Looking;
use picture::picture;
use quiet::Quiet;
use settings::HookFiles;

/// Steps of one seed.
const STEPS: usize = 120;
/// Seeds in an ordinary test run.
const SEEDS: u64 = 300;

#[test]
fn the_invariants_hold_whatever_happens() {
    play_seeds(play);
}

fn play_seeds(play: fn(u64)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("RINGER_SEED") {
        return play(seed);
    }
    for seed in 0..number("RINGER_SEEDS").unwrap_or(SEEDS) {
        if let Err(cause) = std::panic::catch_unwind(|| play(seed)) {
            eprintln!(
                "seed {seed} failed; again with: RINGER_SEED={seed} cargo test -p ringer-core --test simulation"
            );
            std::panic::resume_unwind(cause);
        }
    }
}

fn play(seed: u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..STEPS {
        simulation.step();
        simulation.check();
    }
    simulation.finish();
}

struct Simulation {
    random: Random,
    engine: Engine,
    mono: Duration,
    wall_ms: i64,
    sent: u64,
    files: HookFiles,
    rules: RuleSettings,
    /// Hooks that run.
    running: Vec<Ticket>,
    /// Deliveries in flight.
    in_flight: Vec<(MessageId, DeliveryChannel)>,
    places: Vec<Place>,
    looking: Looking,
    quiet: Quiet,
    away: Away,
    bursts: Bursts,
    /// Every message, and whether its end was ever reported.
    ended: HashMap<MessageId, bool>,
    /// Where each message was sent from, while it may still be undecided.
    from: HashMap<MessageId, Place>,
    /// Messages whose place was cleared after they were sent: they must never come back.
    fenced: HashSet<MessageId>,
    /// What was ever remembered.
    created: HashSet<MessageId>,
    rings: HashMap<Place, Option<Ring>>,
    badges: HashMap<WorkspaceId, usize>,
    /// How many signals terminals sent, and how many of them became a message or a signal for an agent.
    signals_sent: u64,
    signals_used: u64,
    /// On its way into the journal.
    appended: Vec<Event>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let places: Vec<Place> = (0..6)
            .map(|n| {
                Place::surface(WorkspaceId::new(&format!("w{}", n % 3)), SurfaceId::new(&format!("s{n}")))
            })
            .collect();
        let mute = Mute { agent: Some("agent0".into()), ..Mute::default() };
        let rules = RuleSettings {
            mute: if random.below(3) == 0 { vec![mute] } else { Vec::new() },
            rate_limit: RateLimit::parse("5/s").filter(|_| random.below(2) == 0),
            ..RuleSettings::default()
        };
        let mut files = HookFiles::default();
        let mut engine = Engine::new(preferences(&mut files, &rules));
        let now = Now { mono: Duration::ZERO, wall_ms: 0, local: TimeOfDay::default() };
        for place in &places {
            engine.handle(now, known_surface(place));
        }
        Self {
            random,
            engine,
            files,
            rules,
            mono: Duration::ZERO,
            wall_ms: 1_800_000_000_000,
            sent: 0,
            running: Vec::new(),
            in_flight: Vec::new(),
            places,
            looking: Looking::default(),
            quiet: Quiet::default(),
            away: Away::default(),
            bursts: Bursts::default(),
            ended: HashMap::new(),
            from: HashMap::new(),
            fenced: HashSet::new(),
            created: HashSet::new(),
            rings: HashMap::new(),
            badges: HashMap::new(),
            signals_sent: 0,
            signals_used: 0,
            appended: Vec::new(),
        }
    }

    fn now(&mut self) -> Now {
        self.mono += Duration::from_millis(self.random.below(700));
        // The wall clock jumps by years now and then, in both directions.
        if self.random.below(50) == 0 {
            self.wall_ms +=
                i64::try_from(self.random.below(20)).expect("it fits") * 31_536_000_000 - 315_360_000_000;
        }
        let minute = u16::try_from(self.random.below(60)).expect("it fits");
        Now { mono: self.mono, wall_ms: self.wall_ms, local: TimeOfDay::new(12, minute).expect("a time") }
    }

    fn step(&mut self) {
        let now = self.now();
        // A chain of hooks takes a few steps, so this comes at every point of one.
        if self.random.below(4) == 0 {
            self.files.change(&mut self.random);
            self.engine.set_preferences(preferences(&mut self.files, &self.rules));
            self.files.keep_programs_of(&self.engine.hook_revisions());
        }
        let place = self.random.pick(&self.places).clone();
        if self.random.below(25) == 0 {
            return self.burst(now, &place);
        }
        let event = match self.random.below(20) {
            0..7 => self.message(&place),
            7..10 if !self.running.is_empty() => self.answer(),
            10..12 if !self.in_flight.is_empty() => self.delivered(),
            12 if self.random.below(2) == 0 => away::change(&mut self.random),
            12 => self.looking.change(&mut self.random, &self.places),
            13 => Event::Read(place),
            14 => self.clear(place),
            15 => match self.random.below(4) {
                0 => Event::RemoveRead,
                1 => {
                    self.fenced.extend(self.from.keys().cloned());
                    Event::ClearAll
                }
                _ => Event::ReadAll,
            },
            16 => match self.random.below(3) {
                0 => Event::MarkUnread(place),
                1 => Event::Activity(place),
                _ => Event::Mark { id: self.some_id(), read: self.random.below(2) == 0 },
            },
            17 => Event::Remove(self.some_id()),
            18 if self.random.below(3) > 0 => self.terminal_signal(&place),
            18 => {
                let names: Vec<&str> = source_names().collect();
                Event::Observed(Observation::new(
                    *self.random.pick(&names),
                    format!("text {}", self.random.below(3)),
                ))
            }
            19 if self.random.below(4) == 0 => return self.restart(now),
            19 => Event::Toast(Toast::new(format!("k{}", self.random.below(4)), Priority::High, "hello")),
            _ => Event::Tick,
        };
        self.handle(now, &event);
    }

    fn message(&mut self, place: &Place) -> Event {
        self.sent += 1;
        let id = MessageId::new(self.sent, [0; 10]);
        let sender = Sender::new(&format!("agent{}", self.random.below(3))).expect("a name");
        let kinds: Vec<Kind> = Kind::all().collect();
        let kind = *self.random.pick(&kinds);
        let body = format!("text {}", self.random.below(3));
        let mut draft = Draft::new(Scope::global(), sender, kind, &body).expect("a text");
        if kind == Kind::Question {
            draft.question_id = Some(QuestionId::new(self.sent, 0));
        }
        if self.random.below(10) == 0 {
            draft.ttl = Some(Duration::from_millis(self.random.below(1000)));
        }
        if self.random.below(20) == 0 {
            draft.tag = Tag::Mark(ringer_core::message::Mark::Read);
            draft.key = Some(self.some_id().to_string());
        } else if self.random.below(10) == 0 {
            let id = self.some_id();
            quiet::snooze(&mut self.random, self.wall_ms, &id, &mut draft);
        } else if self.random.below(15) == 0 {
            quiet::mute(&mut self.random, self.wall_ms, &mut draft);
        } else {
            self.ended.insert(id.clone(), false);
            self.from.insert(id.clone(), place.clone());
        }
        let caller = Caller { surface: place.surface.clone(), ..Caller::default() };
        let message = Message { seq: 1, id, unix_ms: self.wall_ms, draft, machine: None };
        Event::Message(Box::new(IncomingMessage {
            message,
            caller,
            is_subagent: self.random.below(10) == 0,
            pending: false,
        }))
    }

    /// A program reports much at once.
    fn burst(&mut self, mut now: Now, place: &Place) {
        let kinds: Vec<Kind> = Kind::all().collect();
        let kind = *self.random.pick(&kinds);
        for _ in 0..self.random.below(60) {
            let mut event = self.message(place);
            if let Event::Message(incoming) = &mut event
                && let Tag::Notice(own) = &mut incoming.message.draft.tag
                && *own != Kind::Question
                && kind != Kind::Question
            {
                *own = kind;
            }
            self.handle(now, &event);
            if self.random.below(10) == 0 {
                self.mono += Duration::from_millis(self.random.below(100));
                now.mono = self.mono;
            }
        }
    }

    fn answer(&mut self) -> Event {
        let index = usize::try_from(self.random.below(self.running.len() as u64)).expect("it fits");
        let ticket = self.running.swap_remove(index);
        let answer = match self.random.below(3) {
            0 => HookAnswer::Failed("exit code 1".into()),
            1 => HookAnswer::Patched(
                serde_json::from_str(r#"{"effects":{"sound":false},"stop":true}"#).expect("a patch"),
            ),
            _ => HookAnswer::Patched(
                serde_json::from_str(r#"{"notification":{"body":"patched"}}"#).expect("a patch"),
            ),
        };
        Event::HookAnswered { ticket, answer }
    }

    fn delivered(&mut self) -> Event {
        let index = usize::try_from(self.random.below(self.in_flight.len() as u64)).expect("it fits");
        let (id, channel) = self.in_flight.swap_remove(index);
        let worked = self.random.below(3) > 0;
        let result = if worked { Ok("shown".to_owned()) } else { Err("it hung".to_owned()) };
        Event::Delivered { popup: None, id, channel, result }
    }

    fn clear(&mut self, place: Place) -> Event {
        let place = if self.random.below(2) == 0 { place } else { Place::workspace(place.workspace) };
        let before = self.from.iter().filter(|(_, from)| place.covers(from)).map(|(id, _)| id.clone());
        self.fenced.extend(before);
        Event::Clear(place)
    }

    fn some_id(&mut self) -> MessageId {
        MessageId::new(self.random.below(self.sent + 1), [0; 10])
    }

    /// The hub is killed and comes back: what it listed is restored, what was with the hooks is lost to the engine (the
    /// journal still has it, and the hub reads it again).
    fn restart(&mut self, now: Now) {
        let attention = self.engine.attention();
        let before = picture(attention);
        let mut records: Vec<Record> = attention.store().newest().cloned().collect();
        records.reverse();
        let reasons: Vec<_> = attention.reasons().collect();
        self.files.restart();
        let mut engine = Engine::new(preferences(&mut self.files, &RuleSettings::default()));
        for place in &self.places {
            engine.handle(now, known_surface(place));
        }
        self.looking.restart();
        self.bursts.restart();
        engine.restore_state(now, self.quiet.states().chain(self.away.state()));
        self.rings.clear();
        self.badges.clear();
        self.running.clear();
        self.in_flight.clear();
        let orders = engine.restore(now, records, reasons);
        self.engine = engine;
        self.execute_orders(orders);
        assert_eq!(picture(self.engine.attention()), before, "nothing is counted twice or lost");
        for ended in self.ended.values_mut() {
            *ended = true;
        }
    }

    fn handle(&mut self, now: Now, event: &Event) {
        let orders = self.engine.handle(now, after_round_trip(event));
        self.execute_orders(after_round_trip(&orders));
        while let Some(message) = self.appended.pop() {
            let orders = self.engine.handle(now, after_round_trip(&message));
            self.execute_orders(after_round_trip(&orders));
        }
        let undecided: HashSet<&MessageId> = self.engine.undecided_ids().collect();
        assert_eq!(undecided.len(), self.engine.undecided());
        assert!(undecided.iter().all(|id| self.ended.get(*id) == Some(&false)), "undecided, but ended");
    }

    fn execute_orders(&mut self, orders: Vec<Order>) {
        self.execute_each(orders);
        let is_muted = |record: &Record| self.quiet.is_muted(record, self.wall_ms);
        self.away.handled(is_muted);
    }

    fn execute_each(&mut self, orders: Vec<Order>) {
        let delete = |(at, order): (usize, &Order)| match order {
            Order::DeleteRecord(id) => Some((id.clone(), at)),
            _ => None,
        };
        let deleted_at: HashMap<MessageId, usize> = orders.iter().enumerate().filter_map(delete).collect();
        for (at, order) in orders.into_iter().enumerate() {
            match order {
                Order::RunHook { ticket, hook, hook_input } => {
                    assert!(!self.running.contains(&ticket), "a ticket is given once");
                    self.files.check_order(ticket, &hook, &hook_input);
                    self.running.push(ticket);
                }
                Order::SaveRecord { record, is_new } => {
                    // Before it was cleared, the person may have come back and have read it by looking.
                    let is_deleted_after = deleted_at.get(&record.id).is_some_and(|deleted| *deleted > at);
                    let is_fenced = self.fenced.contains(&record.id) && !is_deleted_after;
                    assert!(!is_fenced, "a cleared notification came back");
                    self.quiet.saved(&record, self.wall_ms);
                    self.away.saved(&record);
                    if is_new && record.id != digest_id() {
                        self.bursts.shown(&record, self.mono);
                    }
                    assert_eq!(is_new, self.created.insert(record.id.clone()), "it is new once");
                    self.ended.insert(record.id, true);
                }
                Order::AddTrailStep { id, .. } => _ = self.ended.insert(id, true),
                Order::DeleteRecord(id) => {
                    self.quiet.deleted(&id);
                    self.away.deleted(&id);
                    self.ended.insert(id, true);
                }
                Order::Deliver(delivery) => {
                    assert!(!self.fenced.contains(&delivery.id), "a cleared notification went out");
                    let is_muted = |record: &Record| self.quiet.is_muted(record, self.wall_ms);
                    self.away.delivered(&delivery, is_muted);
                    if delivery.id != digest_id() {
                        let is_seen = self.looking.is_at(&delivery.place) && !self.away.is_away();
                        let is_shown =
                            delivery.channel.is_popup() || delivery.channel == DeliveryChannel::Sound;
                        assert!(
                            !is_seen || !is_shown,
                            "the person looks at it, and it popped up or made a sound"
                        );
                        self.quiet.delivered(&delivery, self.wall_ms);
                    }
                    self.in_flight.push((delivery.id, delivery.channel));
                }
                Order::Withdraw(id) => self.in_flight.retain(|(own, _)| *own != id),
                Order::Ring { place, ring } => {
                    let before = self.rings.insert(place, ring).flatten();
                    assert_ne!(before, ring, "a ring is ordered only when it changes");
                }
                Order::Badge { workspace, badge } => {
                    let before = self.badges.insert(workspace, badge.0).unwrap_or(0);
                    assert_ne!(before, badge.0, "a badge is ordered only when it changes");
                }
                Order::AppendToJournal { surface, notification, category, .. } => {
                    let body = notification.body;
                    self.signals_used += 1;
                    self.append(&surface, &body, category.as_deref());
                }
                Order::ApplySignal { .. } => self.signals_used += 1,
                Order::SaveState(state) => match &*state.feature {
                    "away" => {
                        let is_muted = |record: &Record| self.quiet.is_muted(record, self.wall_ms);
                        self.away.changed(state.read().expect("a period"), is_muted);
                    }
                    "mute" => self.quiet.mute_changed(&state),
                    _ => {}
                },
                Order::Flash(_)
                | Order::WithdrawFromTerminal { .. }
                | Order::Reorder(_)
                | Order::ShowToast(_)
                | Order::ReportHook { .. }
                | Order::NotifyOfSource(_)
                | Order::Indicator { .. } => {}
            }
        }
    }

    fn check(&self) {
        assert!(self.signals_used <= self.signals_sent, "a signal is used at most once");
        let attention = self.engine.attention();
        let unread = attention.store().newest().filter(|record| !record.is_read).count();
        assert_eq!(unread, attention.store().total_unread());
        assert!(self.running.len() <= MAX_HOOK_CHAINS);
        for place in &self.places {
            let badge = attention.badge(&place.workspace).0;
            assert_eq!(
                badge,
                self.badges.get(&place.workspace).copied().unwrap_or(0),
                "the badge is drawn as it is"
            );
            if attention.store().has_unread(place) {
                let drawn = self.rings.get(place).copied().flatten();
                assert_eq!(drawn, attention.ring(place, Duration::ZERO), "what is unread rings, as it is");
            }
        }
    }

    /// All hooks answer, everything is drained: nothing is left undecided, and of every message something was said.
    fn finish(&mut self) {
        // Bells wait a moment for the text that explains them.
        self.mono += Duration::from_secs(1);
        for _ in 0..10_000 {
            let now = self.now();
            let event = if self.running.is_empty() { Event::Tick } else { self.answer() };
            self.handle(now, &event);
            if self.engine.undecided() == 0 {
                break;
            }
        }
        let now = self.now();
        self.handle(now, &Event::Tick);
        self.quiet.check_at_end(now.wall_ms);
        self.check();
        assert_eq!(self.engine.undecided(), 0);
        let silent: Vec<&MessageId> =
            self.ended.iter().filter(|(_, ended)| !**ended).map(|(id, _)| id).collect();
        assert!(silent.is_empty(), "every end has a recorded cause: {silent:?}");
    }
}

/// The surface of a place is known, and no host reports what the person looks at there.
fn known_surface(place: &Place) -> Event {
    let surface = place.surface.clone().expect("it is a surface");
    Event::Surface { surface, workspace: place.workspace.clone(), tty: None, reports_focus: false }
}

fn preferences(files: &mut HookFiles, rules: &RuleSettings) -> Preferences {
    Preferences {
        rules: rules.clone(),
        escalate_after: Some(Duration::from_secs(4)),
        away_after: Some(Duration::from_secs(2)),
        ..files.next_revision()
    }
}

/// An embedder may save events and orders, or send them to another process.
fn after_round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("JSON");
    let read: T = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(*value, read);
    read
}
