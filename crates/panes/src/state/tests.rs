//! Tests of the state with keys, the mouse, programs, windows and the hub. A [`Session`] has a state and stands in for the
//! server.

mod focus;
mod hub;
mod keys;
mod mouse;
mod opening;
mod programs;
mod questions;
mod room;
mod scrolling;
mod sidebar;
mod windows;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_ipc::{HostFacts, ReportMethod};
use ringer_platform::Ending;
use ringer_ui::InputParser;
use serde_json::{Value, json};

use super::{OpenRequest, State, TakesKeys};
use crate::actions::PaneKeys;
use crate::draw::draw;
use crate::effect::{Effect, HubOrder};
use crate::layout::{Area, PaneId};
use crate::protocol::WindowView;
use crate::screen::Screen;
use crate::view::{ClientFacts, ClientId, Mode};

/// The prefix, as a terminal sends it.
const PREFIX: &str = "\x07";

/// A state and a clock that the test advances. Every program starts, unless the test prevents it.
struct Session {
    state: State,
    now: Instant,
    can_start: bool,
    started: u32,
}

impl Session {
    /// A session without a window.
    fn new() -> Self {
        Self::with_keys(PaneKeys::default())
    }

    fn with_keys(keys: PaneKeys) -> Self {
        let mut ids = 0;
        let new_id = move || {
            ids += 1;
            format!("id{ids}")
        };
        let now = Instant::now();
        let state = State::new(keys, Box::new(new_id), now);
        Self { state, now, can_start: true, started: 0 }
    }

    /// A session with a window of 100 × 30 cells, client 1, which shows one shell.
    fn with_shell() -> Self {
        let mut session = Self::new();
        session.attach(1, 100, 30);
        session
    }

    /// A session with a window and two shells side by side. The right one is focused.
    fn with_two() -> (Self, PaneId, PaneId) {
        let mut session = Self::with_shell();
        let left = session.focused(1);
        session.prefix(1, "|");
        let right = session.focused(1);
        (session, left, right)
    }

    fn facts(columns: u16, lines: u16) -> ClientFacts {
        ClientFacts { columns, lines, directory: PathBuf::from("/src/api"), ..ClientFacts::default() }
    }

    fn attach(&mut self, client: u64, columns: u16, lines: u16) -> Vec<Effect> {
        self.wait(1);
        let effects = self.state.attach(ClientId(client), Self::facts(columns, lines), self.now);
        self.start(effects)
    }

    /// A person opens a pane from another terminal.
    fn open(&mut self, command: &[&str], workspace: Option<&str>) -> PaneId {
        let workspace = workspace.map(str::to_owned);
        let command = command.iter().map(ToString::to_string).collect();
        let takes_keys = TakesKeys::Always;
        self.open_as(OpenRequest { command, workspace, takes_keys, ..OpenRequest::default() })
    }

    fn open_as(&mut self, request: OpenRequest) -> PaneId {
        let request = OpenRequest { facts: Self::facts(80, 24), ..request };
        let (pane, effects) = self.state.open(request, None, self.now);
        self.start(effects);
        pane
    }

    /// Starts the programs. Returns the effects, including those of the starts.
    fn start(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let starts = effects.iter().filter_map(|effect| match effect {
            Effect::Start { pane, .. } => Some(pane.clone()),
            _ => None,
        });
        for pane in starts.collect::<Vec<_>>() {
            self.started += 1;
            effects.extend(if self.can_start {
                self.state.started(&pane, self.started, format!("/dev/pts/{}", self.started), self.now)
            } else {
                self.state.start_failed(&pane, "no such program")
            });
        }
        effects
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// Sends input of a client's terminal.
    fn input(&mut self, client: u64, bytes: &str) -> Vec<Effect> {
        self.wait(1);
        let mut parser = InputParser::default();
        let mut inputs = parser.feed(bytes.as_bytes());
        inputs.extend(parser.flush());
        let mut effects = Vec::new();
        for input in inputs {
            let own = self.state.input(ClientId(client), &input, self.now);
            effects.extend(self.start(own));
        }
        effects
    }

    /// Sends the prefix and keys after it.
    fn prefix(&mut self, client: u64, keys: &str) -> Vec<Effect> {
        self.input(client, &format!("{PREFIX}{keys}"))
    }

    /// Sends a mouse event at a cell, counted from 0; `M` is a press, `m` a release.
    fn mouse(&mut self, client: u64, code: u16, (x, y): (u16, u16), last: char) -> Vec<Effect> {
        self.input(client, &format!("\x1b[<{code};{};{}{last}", x + 1, y + 1))
    }

    fn output(&mut self, pane: &PaneId, bytes: &str) -> Vec<Effect> {
        self.state.output(pane, bytes.as_bytes(), self.now)
    }

    fn order(&mut self, order: HubOrder) -> Vec<Effect> {
        self.state.order(order, self.now)
    }

    fn ring(&mut self, pane: &PaneId) {
        let surface_id = format!("pane:{pane}");
        self.order(HubOrder::Ring { surface_id, lit: true, unread: 1, kind: None });
    }

    fn end(&mut self, pane: &PaneId, code: u8) -> Vec<Effect> {
        self.state.ended(pane, Ending::Exit(code), self.now)
    }

    /// The focused pane of a client.
    fn focused(&self, client: u64) -> PaneId {
        self.state.focused(ClientId(client)).unwrap().id.clone()
    }

    fn mode(&self, client: u64) -> Mode {
        self.state.view(ClientId(client)).unwrap().mode.clone()
    }

    /// The visible panes of a client, with their borders.
    fn areas(&self, client: u64) -> Vec<(PaneId, Area)> {
        let room = self.state.view(ClientId(client)).unwrap().room();
        self.state.shown_workspace(ClientId(client)).unwrap().areas(room)
    }

    fn area(&self, client: u64, pane: &PaneId) -> Area {
        self.areas(client).into_iter().find(|(own, _)| own == pane).unwrap().1
    }

    /// The columns and lines of a pane's terminal.
    fn size(&self, pane: &PaneId) -> (u16, u16) {
        let size = self.state.pane(pane).unwrap().emulator.size();
        (size.columns, size.lines)
    }

    /// The name of the workspace of a pane.
    fn workspace_of(&self, pane: &PaneId) -> String {
        self.state.workspace_of(pane).unwrap().name.clone()
    }

    fn names(&self) -> Vec<&str> {
        self.state.workspaces().iter().map(|workspace| workspace.name.as_str()).collect()
    }

    /// The picture of a client.
    fn drawn(&self, client: u64) -> Screen {
        let mut screen = Screen::new(0, 0);
        draw(&self.state, ClientId(client), self.now, &mut screen);
        screen
    }

    /// The last line of a client's picture.
    fn footer(&self, client: u64) -> String {
        self.drawn(client).text().lines().last().unwrap_or_default().to_owned()
    }
}

/// The bytes that are written to a pane.
fn written(effects: &[Effect], to: &PaneId) -> String {
    let own = effects.iter().filter_map(|effect| match effect {
        Effect::Write { pane, bytes } if pane == to => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    });
    own.collect()
}

/// The parameters of the reports about programs.
fn terminal_reports(effects: &[Effect]) -> Vec<&Value> {
    let own = effects.iter().filter_map(|effect| match effect {
        Effect::Report { method: ReportMethod::Terminal, params } => Some(params),
        _ => None,
    });
    own.collect()
}

/// The answer to a focus order.
fn focus_answer(effects: &[Effect]) -> &Value {
    let mut own = effects.iter().filter_map(|effect| match effect {
        Effect::AnswerFocus(answer) => Some(answer),
        _ => None,
    });
    own.next().unwrap()
}

/// The last facts, if they have changed.
fn facts(effects: &[Effect]) -> Option<&HostFacts> {
    let mut own = effects.iter().rev().filter_map(|effect| match effect {
        Effect::SetFacts(facts) => Some(facts),
        _ => None,
    });
    own.next()
}

/// The copied texts.
fn copied(effects: &[Effect]) -> Vec<&str> {
    let own = effects.iter().filter_map(|effect| match effect {
        Effect::Copy { text, .. } => Some(text.as_str()),
        _ => None,
    });
    own.collect()
}

/// The clients that are told to leave.
fn leaving(effects: &[Effect]) -> Vec<u64> {
    let own = effects.iter().filter_map(|effect| match effect {
        Effect::Leave { client, .. } => Some(client.0),
        _ => None,
    });
    own.collect()
}
