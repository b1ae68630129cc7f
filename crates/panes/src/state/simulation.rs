//! Random runs of the state: windows of any size that attach, detach and are typed into, programs that write anything, fail and
//! end, and a hub that sends any order, disconnects and reconnects. `RINGER_PANES_SEEDS=N` runs N seeds,
//! `RINGER_PANES_SEED=N` repeats one.
//!
//! Invariants after every step:
//!
//! - Each pane is in one workspace, and each workspace has a focused pane.
//! - The terminal of a pane has the size of its area in the window that was used last.
//! - The focused pane is drawn in each window that shows its workspace.
//! - The picture fits its window, and a terminal that receives the changes shows exactly that picture.
//! - The hub knows the panes that have a terminal, and no others.
//! - Nothing is written to a program that has ended, and it asks no question.

mod bytes;
mod checks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_core::message::ShownKind;
use ringer_platform::Ending;
use ringer_ui::{Agent, InputParser};
use test_support::Random;

use super::{OpenRequest, State, TakesKeys};
use crate::actions::PaneKeys;
use crate::effect::{Effect, HubOrder, QuestionNumber, QuestionOutcome};
use crate::emulator::{Emulator, Size};
use crate::layout::{PaneId, SplitDirection};
use crate::pane::Pane;
use crate::screen::Screen;
use crate::view::{ClientFacts, ClientId};

const STEPS: u64 = 16;
const MAX_CLIENTS: usize = 3;
const MAX_PANES: usize = 8;

/// A window and its terminal.
struct Window {
    parser: InputParser,
    terminal: Emulator,
    shown: Option<Screen>,
}

struct Simulation {
    random: Random,
    state: State,
    now: Instant,
    windows: BTreeMap<ClientId, Window>,
    clients: u64,
    /// Panes whose programs have not started yet.
    starting: BTreeSet<PaneId>,
    /// The surfaces that the hub is to know.
    described: BTreeSet<String>,
    /// Open questions.
    asked: BTreeSet<(PaneId, QuestionNumber)>,
    steps: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut ids = 0;
        let new_id = move || {
            ids += 1;
            format!("id{ids}")
        };
        let now = Instant::now();
        Self {
            random: Random::new(seed),
            state: State::new(PaneKeys::default(), Box::new(new_id), now),
            now,
            windows: BTreeMap::new(),
            clients: 0,
            starting: BTreeSet::new(),
            described: BTreeSet::new(),
            asked: BTreeSet::new(),
            steps: 0,
        }
    }

    fn facts(&mut self) -> ClientFacts {
        let (columns, lines) = self.size();
        let surface = self.random.one_in(2).then(|| format!("tmux:%{}", self.random.below(3)));
        let directory = PathBuf::from(*self.random.pick(&["/src/api", "/", "/src/web"]));
        ClientFacts { columns, lines, surface, directory, ..ClientFacts::default() }
    }

    /// The size of a window. Most are small, because large ones take long to check.
    fn size(&mut self) -> (u16, u16) {
        let cells = |random: &mut Random, end: u64| u16::try_from(random.below(end)).unwrap_or(0);
        match self.random.below(100) {
            0 => (250, 60),
            1..=3 => (1, 1),
            4 => (0, 0),
            5..=9 => (1 + cells(&mut self.random, 4), 1 + cells(&mut self.random, 12)),
            10..=15 => (72, 12),
            16..=35 => (40, 8),
            _ => (2 + cells(&mut self.random, 50), 1 + cells(&mut self.random, 14)),
        }
    }

    /// The id of a pane, which may be closed already.
    fn pane(&mut self) -> PaneId {
        let panes: Vec<PaneId> = self.state.panes().map(|pane| pane.id.clone()).collect();
        if panes.is_empty() || self.random.one_in(20) {
            return PaneId::new("closed");
        }
        self.random.pick(&panes).clone()
    }

    fn client(&mut self) -> ClientId {
        let clients: Vec<ClientId> = self.windows.keys().copied().collect();
        if clients.is_empty() { ClientId(0) } else { *self.random.pick(&clients) }
    }

    fn step(&mut self) {
        self.steps += 1;
        self.now += Duration::from_millis(*self.random.pick(&[0, 1, 1, 50, 500, 11_000]));
        let effects = match self.random.below(26) {
            0..=2 if self.windows.len() < MAX_CLIENTS => self.attach(),
            0 => self.leave(),
            1..=3 => self.resize(),
            4..=9 => self.input(),
            10..=13 => self.output(),
            14..=17 => self.start(),
            18 => self.end(),
            19 | 20 => self.order(),
            21 => self.hub(),
            22 => self.open(),
            23 | 24 => self.answer(),
            _ => {
                let client = self.client();
                let mut effects = self.state.terminal_back(client, self.now);
                effects.extend(self.state.end_updates(self.now + Duration::from_millis(200)).1);
                effects.extend(self.state.tick(self.now));
                effects
            }
        };
        self.check_writes(&effects);
        self.perform(effects);
        self.check();
    }

    /// Attaches a window, usually with several panes.
    fn begin(&mut self) {
        let effects = self.attach();
        self.perform(effects);
        for _ in 0..self.random.below(4) {
            let effects = self.open();
            self.perform(effects);
        }
    }

    fn attach(&mut self) -> Vec<Effect> {
        self.clients += 1;
        let (client, facts) = (ClientId(self.clients), self.facts());
        let terminal = Emulator::new(Size::at_least(facts.columns, facts.lines), 0);
        self.windows.insert(client, Window { parser: InputParser::default(), terminal, shown: None });
        self.state.attach(client, facts, self.now)
    }

    fn leave(&mut self) -> Vec<Effect> {
        let client = self.client();
        self.windows.remove(&client);
        self.state.detach(client)
    }

    fn resize(&mut self) -> Vec<Effect> {
        let (client, (columns, lines)) = (self.client(), self.size());
        if let Some(window) = self.windows.get_mut(&client) {
            window.terminal.resize(Size::at_least(columns, lines));
            window.shown = None;
        }
        self.state.resize(client, columns, lines, self.now)
    }

    fn input(&mut self) -> Vec<Effect> {
        let client = self.client();
        let bytes = bytes::input(&mut self.random);
        let is_late = self.random.one_in(3);
        let Some(window) = self.windows.get_mut(&client) else { return Vec::new() };
        let mut inputs = window.parser.feed(&bytes);
        if is_late && window.parser.is_waiting() {
            inputs.extend(window.parser.flush());
        }
        let mut effects = Vec::new();
        for input in inputs {
            effects.extend(self.state.input(client, &input, self.now));
        }
        effects
    }

    fn output(&mut self) -> Vec<Effect> {
        let pane = self.pane();
        let bytes = bytes::output(&mut self.random);
        self.state.output(&pane, &bytes, self.now)
    }

    /// Reports that a program has started, or failed to start.
    fn start(&mut self) -> Vec<Effect> {
        let Some(pane) = self.starting.pop_first() else { return Vec::new() };
        if self.random.one_in(5) {
            return self.state.start_failed(&pane, "no such program: \u{1b}[31m漢");
        }
        let pid = u32::try_from(self.steps).unwrap_or(0);
        self.state.started(&pane, pid, format!("/dev/pts/{pid}"), self.now)
    }

    fn end(&mut self) -> Vec<Effect> {
        let pane = self.pane();
        let is_running = |own: &Pane| own.tty.is_some() && own.ending.is_none();
        if !self.state.pane(&pane).is_some_and(is_running) {
            return self.state.close(&PaneId::new("closed"));
        }
        let ending =
            *self.random.pick(&[Ending::Exit(0), Ending::Exit(0), Ending::Exit(3), Ending::Signal(9)]);
        self.state.ended(&pane, ending, self.now)
    }

    fn open(&mut self) -> Vec<Effect> {
        if self.state.panes().count() >= MAX_PANES {
            let pane = self.pane();
            return self.state.close(&pane);
        }
        let request = OpenRequest {
            command: self.random.pick(&[vec![], vec!["make".to_owned()]]).clone(),
            name: self.random.pick(&[None, Some("名前 a\tb")]).map(str::to_owned),
            workspace: self
                .random
                .pick(&[None, Some("api"), Some("very long name of a workspace")])
                .map(str::to_owned),
            split: *self.random.pick(&[None, Some(SplitDirection::Right), Some(SplitDirection::Down)]),
            takes_keys: *self.random.pick(&[TakesKeys::Never, TakesKeys::FromCaller, TakesKeys::Always]),
            caller: if self.random.one_in(2) { Some(self.pane()) } else { None },
            facts: self.facts(),
        };
        self.state.open(request, None, self.now).1
    }

    /// Reports the outcome of a question, which may be closed already.
    fn answer(&mut self) -> Vec<Effect> {
        let asked: Vec<(PaneId, QuestionNumber)> = self.asked.iter().cloned().collect();
        let (pane, number) = if asked.is_empty() || self.random.one_in(5) {
            (self.pane(), QuestionNumber(self.random.below(4)))
        } else {
            self.random.pick(&asked).clone()
        };
        let yes = QuestionOutcome::Chosen("Yes".to_owned());
        let outcomes = [QuestionOutcome::Asked, QuestionOutcome::Closed, QuestionOutcome::NotAsked, yes];
        let outcome = self.random.pick(&outcomes).clone();
        if outcome != QuestionOutcome::Asked {
            self.asked.remove(&(pane.clone(), number));
        }
        self.state.question_outcome(&pane, number, &outcome)
    }

    fn order(&mut self) -> Vec<Effect> {
        let surface_id = format!("pane:{}", self.pane());
        let text =
            (*self.random.pick(&["", "1", "99+", "a long text: \u{1b}[2J 漢字漢字漢字漢字漢字"])).to_owned();
        let kind = *self.random.pick(&[None, Some(ShownKind::Permission), Some(ShownKind::Question)]);
        let order = match self.random.below(7) {
            0 => HubOrder::Ring { surface_id, lit: self.random.one_in(2), unread: 1, kind },
            1 => {
                let workspace = self.state.workspaces().first().map(|workspace| workspace.id.clone());
                let badge = self.random.place(2);
                HubOrder::Badge { workspace_id: workspace.unwrap_or_default(), badge }
            }
            2 => HubOrder::Flash { surface_id },
            3 => HubOrder::Toast { text: Some(text).filter(|text| !text.is_empty()) },
            4 => HubOrder::Indicator { key: "limit".to_owned(), text },
            5 => HubOrder::Focus { surface_id },
            _ => {
                self.agent(surface_id);
                return Vec::new();
            }
        };
        self.state.order(order, self.now)
    }

    fn agent(&mut self, surface: String) {
        let state = *self.random.pick(&["blocked", "working", "done", "exited", "other"]);
        self.state.agents(&[Agent {
            id: "a1".to_owned(),
            sender: "a1".to_owned(),
            label: "api/auth".to_owned(),
            client: "claude".to_owned(),
            state: state.to_owned(),
            text: String::new(),
            since_ms: 0,
            place: String::new(),
            surface: Some(surface),
            muted_until_ms: None,
        }]);
    }

    fn hub(&mut self) -> Vec<Effect> {
        self.state.hub_lost();
        if self.random.one_in(2) {
            self.state.hub_connected();
        }
        Vec::new()
    }

    /// Performs effects as the server does.
    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start { pane, .. } => _ = self.starting.insert(pane),
                Effect::Forget { pane } => {
                    self.starting.remove(&pane);
                    self.asked.retain(|(own, _)| *own != pane);
                }
                Effect::Ask { pane, number, replaces, .. } => {
                    self.asked.extend([(pane.clone(), number)]);
                    self.asked.retain(|(own, number)| *own != pane || Some(*number) != replaces);
                }
                Effect::CloseQuestion { pane, number } => _ = self.asked.remove(&(pane, number)),
                Effect::Leave { client, .. } => {
                    self.windows.remove(&client);
                    let effects = self.state.detach(client);
                    self.perform(effects);
                }
                Effect::SetFacts(facts) => self.described = facts.surfaces.into_keys().collect(),
                _ => {}
            }
        }
    }
}

/// Returns the largest numbers of panes and of windows at one time.
fn play(seed: u64) -> (usize, usize) {
    let mut simulation = Simulation::new(seed);
    let mut most = (0, 0);
    simulation.begin();
    for _ in 0..STEPS {
        simulation.step();
        let count = (simulation.state.panes().count(), simulation.windows.len());
        most = (most.0.max(count.0), most.1.max(count.1));
    }
    most
}

/// Runs this many seeds. Each test here runs a quarter of them.
fn play_quarter(quarter: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("RINGER_PANES_SEED") {
        play(seed);
        return;
    }
    let seeds = number("RINGER_PANES_SEEDS").unwrap_or(2_000);
    let mut crowded = 0;
    for seed in (quarter..seeds).step_by(4) {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "seed {seed}: play it again with RINGER_PANES_SEED={seed}");
        let (panes, windows) = played.unwrap_or_default();
        crowded += u64::from(panes > 2 && windows > 1);
    }
    assert!(seeds < 2_000 || crowded > seeds / 40, "several windows show several panes: {crowded}");
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
