//! Snapshots of windows, in `snapshots`. `INSTA_UPDATE=always cargo nextest run -p ringer-panes drawing` updates them; look
//! at each before committing it.

use std::path::PathBuf;
use std::time::Instant;

use proptest::prelude::*;
use ringer_core::message::ShownKind;
use ringer_platform::Ending;
use ringer_ui::{Agent, InputParser};

use super::{draw, draw_lines};
use crate::actions::PaneKeys;
use crate::effect::HubOrder;
use crate::emulator::{Emulator, Size};
use crate::layout::PaneId;
use crate::screen::{Abilities, Screen};
use crate::state::{OpenRequest, State, TakesKeys};
use crate::style::ColourDepth;
use crate::view::{ClientFacts, ClientId};

const CLIENT: ClientId = ClientId(1);

/// A window with agents, one of which needs permission.
struct Picture {
    state: State,
    now: Instant,
    agents: Vec<Agent>,
}

impl Picture {
    /// The panes of the specification: a ringing agent beside a shell, and two more workspaces.
    fn new(columns: u16, lines: u16) -> Self {
        let mut ids = 0;
        let new_id = move || {
            ids += 1;
            format!("id{ids}")
        };
        let now = Instant::now();
        let state = State::new(PaneKeys::default(), Box::new(new_id), now);
        let mut picture = Self { state, now, agents: Vec::new() };
        let auth = picture.open("api", "claude", None, "/src/api");
        picture.state.attach(CLIENT, facts("/src/api", columns, lines), picture.now);
        let shell = picture.open("api", "", None, "/src/api");
        let login = picture.open("web", "claude", None, "/src/web");
        let guide = picture.open("docs", "codex", Some("guide"), "/src/docs");
        picture.agent(&auth, "api/auth", "claude", "blocked");
        picture.agent(&login, "login", "claude", "working");
        picture.agent(&guide, "docs/guide", "codex", "done");
        let ring = HubOrder::Ring {
            surface_id: format!("pane:{auth}"),
            lit: true,
            unread: 2,
            kind: Some(ShownKind::Permission),
        };
        picture.state.order(ring, picture.now);
        for (at, number) in [(0, 2), (2, 1)] {
            let workspace_id = picture.state.workspaces()[at].id.clone();
            picture.state.order(HubOrder::Badge { workspace_id, badge: number }, picture.now);
        }
        let toast = HubOrder::Toast { text: Some("● docs/guide: done · 9s".to_owned()) };
        picture.state.order(toast, picture.now);
        picture.output(&auth, "● I'll clean the build directory.\r\n\r\n Bash command\r\n   rm -rf build && make\r\n ❯ 1. Yes   3. No");
        picture.output(
            &shell,
            "~/src/api $ git log\r\n3f2af9c Add retry\r\na91bb02 Rename 漢字\r\n~/src/api $ \x1b]2;zsh\x07",
        );
        picture
    }

    fn open(&mut self, workspace: &str, program: &str, name: Option<&str>, directory: &str) -> PaneId {
        let request = OpenRequest {
            command: Some(program)
                .filter(|program| !program.is_empty())
                .map(str::to_owned)
                .into_iter()
                .collect(),
            name: name.map(str::to_owned),
            workspace: Some(workspace.to_owned()),
            // The window shows the first workspace.
            takes_keys: if workspace == "api" { TakesKeys::Always } else { TakesKeys::Never },
            facts: facts(directory, 80, 24),
            ..OpenRequest::default()
        };
        let (pane, _) = self.state.open(request, None, self.now);
        self.state.started(&pane, 1, format!("/dev/pts/{pane}"), self.now);
        pane
    }

    fn agent(&mut self, pane: &PaneId, label: &str, client: &str, state: &str) {
        self.agents.push(Agent {
            id: label.to_owned(),
            sender: label.to_owned(),
            label: label.to_owned(),
            client: client.to_owned(),
            state: state.to_owned(),
            text: String::new(),
            since_ms: 0,
            place: String::new(),
            surface: Some(format!("pane:{pane}")),
            muted_until_ms: None,
        });
        self.state.agents(&self.agents);
    }

    fn output(&mut self, pane: &PaneId, text: &str) {
        self.state.output(pane, text.as_bytes(), self.now);
    }

    fn input(&mut self, bytes: &str) {
        for input in InputParser::default().feed(bytes.as_bytes()) {
            self.state.input(CLIENT, &input, self.now);
        }
    }

    fn drawn(&self) -> Screen {
        let mut screen = Screen::new(0, 0);
        draw(&self.state, CLIENT, self.now, &mut screen);
        screen
    }

    fn check(&self, name: &str) {
        compare(name, &self.drawn().text());
    }
}

fn facts(directory: &str, columns: u16, lines: u16) -> ClientFacts {
    ClientFacts { columns, lines, directory: PathBuf::from(directory), ..ClientFacts::default() }
}

fn compare(name: &str, drawn: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, drawn));
}

/// The style of each cell of a screen: reverse, bold, dim or normal.
fn looks(screen: &Screen) -> String {
    let sign = |x: u16, y: u16| match screen.cell(x, y).map(|cell| cell.style) {
        Some(style) if style.reverse => 'r',
        Some(style) if style.bold => 'b',
        Some(style) if style.dim => 'd',
        _ => ' ',
    };
    let line =
        |y: u16| (0..screen.area().width).map(|x| sign(x, y)).collect::<String>().trim_end().to_owned();
    (0..screen.area().height).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn drawing_of_an_agent_that_rings_beside_a_shell() {
    let picture = Picture::new(100, 12);
    picture.check("panes-100x12");
    compare("panes-100x12-looks", &looks(&picture.drawn()));
}

#[test]
fn drawing_without_room_for_the_sidebar() {
    Picture::new(60, 20).check("panes-60x20");
}

#[test]
fn drawing_in_a_very_small_window() {
    Picture::new(40, 8).check("panes-40x8");
}

#[test]
fn drawing_in_a_large_window() {
    let mut picture = Picture::new(160, 20);
    picture.input("\x07-");
    picture.check("panes-160x20");
}

#[test]
fn drawing_where_there_is_only_ascii() {
    let screen = Picture::new(100, 12).drawn();
    let mut bytes = String::new();
    let abilities = Abilities { colours: ColourDepth::None, is_ascii: true };
    screen.changes(None, abilities, &mut bytes);
    assert!(bytes.is_ascii(), "{bytes:?}");
    let mut terminal = Emulator::new(Size { columns: 100, lines: 12 }, 0);
    terminal.feed(bytes.as_bytes());
    let mut shown = Screen::new(100, 12);
    terminal.each_cell(0..terminal.size().lines, |x, y, cell| *shown.cell_mut(x, y).unwrap() = cell);
    compare("ascii-100x12", &shown.text());
}

#[test]
fn what_agents_write_can_be_read_where_there_is_only_ascii() {
    let mut picture = Picture::new(100, 12);
    let pane = picture.state.focused(CLIENT).unwrap().id.clone();
    picture.output(&pane, "\x1b[2J\x1b[H“It’s”—1–2•all");
    let mut bytes = String::new();
    picture.drawn().changes(None, Abilities { colours: ColourDepth::None, is_ascii: true }, &mut bytes);
    assert!(bytes.contains("\"It's\"-1-2*all"), "{bytes}");
}

#[test]
fn drawing_of_the_keys() {
    for (columns, lines) in [(80, 24), (120, 40), (40, 8)] {
        let mut picture = Picture::new(columns, lines);
        picture.input("\x07?");
        picture.check(&format!("keys-{columns}x{lines}"));
    }
}

#[test]
fn drawing_of_ends_and_questions() {
    let mut picture = Picture::new(100, 12);
    let shell = picture.state.focused(CLIENT).unwrap().id.clone();
    picture.state.ended(&shell, Ending::Signal(9), picture.now);
    picture.input("\x07z");
    picture.check("ended-100x12");
    let mut picture = Picture::new(80, 12);
    picture.input("\x07x");
    picture.check("close-80x12");
}

/// There is no footer.
#[test]
fn drawing_of_what_is_asked_typed_and_noted_in_a_low_window() {
    for (columns, lines) in [(80, 7), (20, 5), (5, 1)] {
        let drawn = [
            ("nothing", ""),
            ("prefix", "\x07"),
            ("scrolling", "\x07["),
            ("close", "\x07x"),
            ("rename", "\x07,ab漢字"),
            ("search", "\x07[/retry"),
            ("not found", "\x07[/nothing\r"),
        ]
        .map(|(what, keys)| {
            let mut picture = Picture::new(columns, lines);
            picture.input(keys);
            let screen = picture.drawn();
            let cursor = screen.cursor.map(|cursor| (cursor.x, cursor.y));
            format!("{what}, cursor {cursor:?}\n{}\n", screen.text())
        });
        compare(&format!("prompts-{columns}x{lines}"), &drawn.concat());
    }
}

#[test]
fn a_question_is_seen_in_each_low_window_that_has_a_line() {
    for (columns, lines) in (4..90).flat_map(|columns| (1..8).map(move |lines| (columns, lines))) {
        let mut picture = Picture::new(columns, lines);
        let last = |picture: &Picture| picture.drawn().text().lines().last().unwrap_or_default().to_owned();
        let before = last(&picture);
        picture.input("\x07x");
        let asked = last(&picture);
        let is_asked = asked.contains("Close") || asked.contains("y/");
        assert!(is_asked && asked != before, "{columns}x{lines}: {asked}");
        picture.input("n");
        assert_eq!(last(&picture), before, "{columns}x{lines}");
    }
    for (columns, lines) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (3, 2)] {
        for keys in ["\x07x", "\x07,name", "\x07[/text", "\x07[/text\r"] {
            let mut picture = Picture::new(columns, lines);
            picture.input(keys);
            picture.drawn();
        }
    }
}

/// Output of programs: text with wide characters, colours, movements, scroll regions, alternate screens and insertions.
const WRITTEN: &str = "([a-z 漢é]{1,30}|\\u{301}|\r\n|\n|\x1b\\[3[0-7]m|\x1b\\[[1-9];[1-9]H|\x1b\\[\\?1049[hl]|\x1b\\[[0-3]?[JKLMP@STX]|\x1b\\[2;5r|\x1bM|\x1b\\[4[hl]|\x1b\\[\\?25[hl]|\x1b\\]4;1;#123456\x07|\x1b\\[\\?2026[hl]|\x1bc|\t){0,12}";

proptest! {
    #[test]
    fn lines_that_changed_are_all_that_has_to_be_drawn(
        written in prop::collection::vec((any::<bool>(), WRITTEN, any::<bool>()), 1..12),
        lines in prop::sample::select(vec![16, 7]),
        keys in prop::sample::select(vec!["", "\x07x"]),
    ) {
        let mut picture = Picture::new(90, lines);
        picture.input(keys);
        let panes: Vec<PaneId> = picture.state.workspaces()[0].panes();
        let (mut shown, mut screen) = (picture.drawn(), Screen::new(0, 0));
        for (is_first, text, is_drawn) in written {
            picture.output(&panes[usize::from(is_first)], &text);
            if is_drawn {
                let changed: Vec<_> = panes
                    .iter()
                    .map(|pane| (pane.clone(), picture.state.take_changed_lines(pane)))
                    .collect();
                let rows = draw_lines(&picture.state, CLIENT, &changed, &shown, &mut screen).unwrap();
                for row in rows {
                    shown.swap_row(row, &mut screen);
                }
                shown.cursor = screen.cursor;
                prop_assert_eq!(&shown, &picture.drawn());
            }
        }
    }
}

#[test]
fn the_cursor_is_never_in_the_middle_of_a_wide_character() {
    let at = |text: &str| {
        let mut emulator = Emulator::new(Size { columns: 20, lines: 6 }, 0);
        emulator.feed(text.as_bytes());
        emulator.cursor().map(|(x, ..)| x)
    };
    assert_eq!(at("漢字\x1b[1;2H"), Some(0));
    assert_eq!(at("漢字\x1b[1;3H"), Some(2));
    // The first half of the second one is deleted.
    assert_eq!(at("漢字\x1b[1;3H\x1b[P"), Some(2));
    // The first half of the first one is: nothing is before the other half.
    assert_eq!(at("漢字\x1b[1;1H\x1b[P"), Some(0));
}

/// The emulator only reports the line that the program changed.
#[test]
fn a_selection_that_the_program_ends_is_drawn_away_everywhere() {
    let mut emulator = Emulator::new(Size { columns: 20, lines: 6 }, 0);
    emulator.feed(b"one\r\ntwo\r\nthree\r\nfour");
    emulator.take_changed_lines();
    emulator.select(0, 0, 3);
    emulator.select_to(3, 2);
    // Everything was drawn for another reason meanwhile. Then the program clears one of the lines.
    emulator.feed(b"\x1b[2;1H\x1b[2K");
    assert_eq!(emulator.take_changed_lines(), [0, 1, 2, 3, 4, 5]);
}
