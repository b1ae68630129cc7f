//! Agents that ask, work, fail, are interrupted and end, and a person who looks, reads and clears, in any order.
//!
//! What is open and was reported by an agent still has its cause, and what has its cause is open.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use ringer_core::agent::{
    AgentChanges, AgentMachine, AgentNotice, AgentState, AgentTimeouts, Authority, BlockedOn, Signal,
    SignalContent, episode_key,
};
use ringer_core::attention::{Cause, TrailStep};
use ringer_core::engine::{Caller, IncomingMessage, Ticket};
use ringer_core::message::{Agent, Mark, Place, ShownKind, SurfaceId, Tag, WorkspaceId};
use ringer_core::policy::{DeliveryChannel, HookAnswer, RuleSettings};
use ringer_core::time::TimeOfDay;
use ringer_core::{Draft, Engine, Event, Kind, Message, MessageId, Now, Order, Scope, Sender};
use test_support::Random;

use super::looking::Looking;
use super::settings::HookFiles;
use super::{known_surface, play_seeds, preferences};

const STEPS: usize = 150;

#[test]
fn a_notification_lives_with_its_cause() {
    play_seeds(play);
}

fn play(seed: u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..STEPS {
        simulation.step();
    }
    simulation.settle();
}

struct Session {
    agent: Agent,
    machine: AgentMachine,
    place: Place,
}

struct Simulation {
    random: Random,
    engine: Engine,
    sessions: Vec<Session>,
    mono: Duration,
    sent: u64,
    /// Messages that are in the journal and that the hub has not read.
    unread_journal: VecDeque<Event>,
    running: Vec<Ticket>,
    /// The notices that need the person until their cause ends, whatever the person looks at.
    prompts: HashSet<String>,
    ids: HashMap<MessageId, String>,
    /// What the person cleared: it is gone, also while its cause holds.
    cleared: HashSet<String>,
    looking: Looking,
    /// Of each agent, the end of its last turn and whether that had a popup.
    turn_ends: HashMap<String, (MessageId, bool)>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5e55_1045);
        let mut files = HookFiles::default();
        files.change(&mut random);
        let mut engine = Engine::new(preferences(&mut files, &RuleSettings::default()));
        let sessions: Vec<Session> = (0..3)
            .map(|number| {
                let surface = SurfaceId::new(&format!("s{}", number % 2));
                Session {
                    agent: Agent::new(&format!("agent{number}")).expect("a name"),
                    machine: AgentMachine::new(Duration::ZERO, AgentTimeouts::default()),
                    place: Place::surface(WorkspaceId::new("w"), surface),
                }
            })
            .collect();
        let now = Now { mono: Duration::ZERO, wall_ms: 0, local: TimeOfDay::default() };
        for Session { place, .. } in &sessions {
            engine.handle(now, known_surface(place));
        }
        Self {
            random,
            engine,
            sessions,
            mono: Duration::ZERO,
            sent: 0,
            unread_journal: VecDeque::new(),
            running: Vec::new(),
            prompts: HashSet::new(),
            ids: HashMap::new(),
            cleared: HashSet::new(),
            looking: Looking::default(),
            turn_ends: HashMap::new(),
        }
    }

    fn now(&mut self) -> Now {
        self.mono += Duration::from_millis(self.random.below(20_000));
        let wall_ms = i64::try_from(self.mono.as_millis()).expect("it fits");
        Now { mono: self.mono, wall_ms, local: TimeOfDay::default() }
    }

    fn step(&mut self) {
        let now = self.now();
        match self.random.below(12) {
            0..6 => self.signal(now),
            6..9 => {
                if let Some(event) = self.unread_journal.pop_front() {
                    self.handle(now, event);
                }
            }
            9 => self.answer(now),
            10 => self.person(now),
            _ => self.settle(),
        }
    }

    fn signal(&mut self, now: Now) {
        let number = usize::try_from(self.random.below(3)).expect("it fits");
        let signal = self.some_signal();
        let session = &mut self.sessions[number];
        let changes = session.machine.apply(now.mono, &signal);
        let (agent, place) = (session.agent.clone(), session.place.clone());
        self.append(now, &agent, &place, changes);
    }

    fn some_signal(&mut self) -> Signal {
        let call = *self.random.pick(&["a", "b", "c"]);
        let hook = |state| Signal::state(Authority::Hook, state);
        match self.random.below(14) {
            0 | 1 => hook(AgentState::Blocked(BlockedOn::Permission)).call(call).text(call),
            2 => hook(AgentState::Blocked(BlockedOn::Question)).call(call).text("which?"),
            3 => hook(AgentState::Blocked(BlockedOn::Input)),
            4 | 5 => hook(AgentState::Working).call(call),
            6 => hook(AgentState::Working),
            7 => hook(AgentState::Working).by_person(),
            8 => hook(AgentState::Done).text("done"),
            9 => hook(AgentState::Error),
            10 => Signal::new(Authority::Hook, SignalContent::Interrupted),
            11 => hook(AgentState::Exited),
            12 => Signal::state(Authority::Notification, AgentState::Blocked(BlockedOn::Permission)),
            _ => Signal::new(Authority::Hook, SignalContent::Idle),
        }
    }

    /// What the journal does with the changes of a machine.
    fn append(&mut self, now: Now, agent: &Agent, place: &Place, changes: AgentChanges) {
        for AgentNotice { episode, kind, category, text, .. } in changes.notices {
            let key = episode_key(agent, episode);
            if kind == Kind::Question || category == Some("permission_prompt") {
                self.prompts.insert(key.clone());
            }
            let body = text.unwrap_or_else(|| "notice".to_owned());
            self.push(now, agent, place, Tag::Notice(kind), &body, &key, category);
        }
        for end in changes.ended {
            let key = episode_key(agent, end.episode);
            self.push(now, agent, place, Tag::Mark(Mark::Resolve), end.by.as_str(), &key, None);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a message")]
    fn push(
        &mut self,
        now: Now,
        agent: &Agent,
        place: &Place,
        tag: Tag,
        body: &str,
        key: &str,
        category: Option<&str>,
    ) {
        self.sent += 1;
        let sender = Sender::new(agent.as_str()).expect("a name");
        let mut draft = Draft::tagged(Scope::global(), sender, tag, body);
        draft.key = Some(key.to_owned());
        draft.category = category.map(str::to_owned);
        let id = MessageId::new(self.sent, [0; 10]);
        self.ids.insert(id.clone(), key.to_owned());
        let message = Message { seq: 1, id, unix_ms: now.wall_ms, draft, machine: None };
        let caller = Caller { surface: place.surface.clone(), ..Caller::default() };
        let incoming = IncomingMessage { message, caller, is_subagent: false, pending: false };
        self.unread_journal.push_back(Event::Message(Box::new(incoming)));
    }

    fn answer(&mut self, now: Now) {
        if self.running.is_empty() {
            return;
        }
        let index = usize::try_from(self.random.below(self.running.len() as u64)).expect("it fits");
        let ticket = self.running.swap_remove(index);
        // One that fails may suppress the notification, which is then nowhere.
        let answer = HookAnswer::Patched(serde_json::from_str("{}").expect("a patch"));
        self.handle(now, Event::HookAnswered { ticket, answer });
    }

    fn person(&mut self, now: Now) {
        let place = self.sessions[usize::try_from(self.random.below(3)).expect("it fits")].place.clone();
        let event = match self.random.below(8) {
            0 => Event::ReadAll,
            1 => Event::Read(place),
            2 => {
                let open = self.engine.attention().store().newest();
                self.cleared.extend(open.filter_map(|record| Some(record.key.as_deref()?.to_owned())));
                let undecided: Vec<MessageId> = self.engine.undecided_ids().cloned().collect();
                self.cleared.extend(undecided.iter().filter_map(|id| self.ids.get(id)).cloned());
                Event::ClearAll
            }
            3 => Event::RemoveRead,
            4 => {
                self.engine.trim(3);
                Event::Tick
            }
            _ => {
                let places = self.sessions.iter().map(|session| session.place.clone()).collect::<Vec<_>>();
                self.looking.change(&mut self.random, &places)
            }
        };
        self.handle(now, event);
    }

    fn handle(&mut self, now: Now, event: Event) {
        for order in self.engine.handle(now, event) {
            match order {
                Order::RunHook { ticket, .. } => self.running.push(ticket),
                Order::Deliver(delivery) => {
                    let record = self.engine.attention().store().get(&delivery.id).expect("it is recorded");
                    let has_ended = |step: &TrailStep| matches!(step.cause, Cause::Resolved { .. });
                    assert!(!record.trail.steps().any(has_ended), "what has ended is not delivered");
                    let is_popup = delivery.channel.is_popup();
                    let is_shown = is_popup || delivery.channel == DeliveryChannel::Sound;
                    let is_seen = self.looking.is_at(&delivery.place);
                    assert!(
                        !is_seen || !is_shown,
                        "the person looks at it, and it popped up or made a sound"
                    );
                    let end = self.turn_ends.get_mut(&delivery.sender).filter(|_| is_popup);
                    match (delivery.kind, end) {
                        (ShownKind::Complete, Some((id, had_popup))) if *id == delivery.id => {
                            *had_popup = true;
                        }
                        (ShownKind::Idle, Some((_, had_popup))) => {
                            assert!(!*had_popup, "a second popup for one turn");
                        }
                        _ => {}
                    }
                }
                Order::SaveRecord { record, is_new: true } if record.kind == Kind::Complete => {
                    self.turn_ends.insert(record.sender.to_string(), (record.id, false));
                }
                _ => {}
            }
        }
    }

    /// The hub reads everything and all hooks answer; then nothing is in between.
    fn settle(&mut self) {
        loop {
            let now = self.now();
            if let Some(event) = self.unread_journal.pop_front() {
                self.handle(now, event);
            } else if !self.running.is_empty() {
                self.answer(now);
            } else if self.engine.undecided() > 0 {
                self.handle(now, Event::Tick);
            } else {
                break;
            }
        }
        self.check();
    }

    fn check(&self) {
        let causes: HashSet<String> = self
            .sessions
            .iter()
            .flat_map(|session| {
                session.machine.open_episodes().map(|episode| episode_key(&session.agent, episode))
            })
            .collect();
        let store = self.engine.attention().store();
        let open: HashSet<&str> = store
            .newest()
            .filter(|record| !record.is_resolved && record.kind != Kind::Status)
            .filter_map(|record| record.key.as_deref())
            .collect();
        for key in &open {
            assert!(causes.contains(*key), "{key} is open, and its cause has ended");
        }
        for key in causes.iter().filter(|key| self.prompts.contains(*key) && !self.cleared.contains(*key)) {
            assert!(open.contains(key.as_str()), "{key} has its cause, and is not open");
        }
        let unread_and_over = store.newest().filter(|record| record.is_resolved && !record.is_read);
        assert_eq!(unread_and_over.count(), 0, "what has ended is not unread");
    }
}
