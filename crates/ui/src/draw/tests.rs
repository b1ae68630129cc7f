//! The screens, as they are drawn at four sizes.

mod keys_and_clicks;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use ringer_core::agent::{PermissionRequest, PromptContent, PromptQuestion};
use ringer_core::attention::ReadBy;
use ringer_core::message::ShownKind;

use super::*;
use crate::backend::{Agent, Data, FooterToast, Notification, PromptDetails, Request, Response};
use crate::inbox::Effect;
use crate::keys::KeyMap;
use crate::theme::Palette;

const NOW: i64 = 1_771_338_605_000;

fn notification(id: &str, label: &str, kind: ShownKind, text: &str, seconds: i64) -> Notification {
    Notification {
        id: id.to_owned(),
        short_id: id.to_owned(),
        from: label.to_owned(),
        label: label.to_owned(),
        kind,
        text: text.to_owned(),
        sent_ms: NOW - seconds * 1000,
        place: "tmux main:3".to_owned(),
        is_read: kind == ShownKind::Error,
        read_by: (kind == ShownKind::Error).then_some(ReadBy::Looking),
        snoozed_until_ms: None,
    }
}

fn agent(label: &str, client: &str, state: &str, text: &str, seconds: i64) -> Agent {
    Agent {
        id: format!("{client}-{label}"),
        sender: label.to_owned(),
        label: label.to_owned(),
        client: client.to_owned(),
        state: state.to_owned(),
        text: text.to_owned(),
        since_ms: NOW - seconds * 1000,
        place: "tmux main:2".to_owned(),
        surface: None,
        muted_until_ms: None,
    }
}

fn busy() -> Data {
    let command = "Bash: rm -rf build && make deploy TARGET=staging REGION=eu-central-1 && ./notify.sh --all";
    Data {
        needs_you: vec![
            notification("k3fx", "api/auth", ShownKind::Permission, command, 120),
            notification("9qdw", "proj", ShownKind::Question, "Which database? (Postgres / SQLite)", 300),
        ],
        needs_you_unlisted: 0,
        recent: vec![
            notification("m2xw", "docs", ShownKind::Complete, "All 214 tests pass.", 540),
            notification("p7rt", "ci", ShownKind::Error, "main is red: 3 tests fail", 2460),
        ],
        agents: vec![
            agent("api/auth", "claude", "blocked", "", 120),
            agent("proj", "codex", "blocked", "", 300),
            agent("web/login", "claude", "working", "Edit src/login.tsx", 40),
            agent("infra", "gemini", "stuck", "", 700),
            agent("docs", "claude", "done", "All 214 tests pass.", 540),
            Agent {
                muted_until_ms: Some(NOW + 2_400_000),
                ..agent("scratch", "opencode", "ready", "", 3700)
            },
            agent("old", "claude", "exited", "", 200),
        ],
        toast: None,
        indicators: vec!["limit 91 % until 17:00".to_owned(), "MCP ok".to_owned()],
        problem: None,
        was_read: true,
        has_history: true,
    }
}

fn hostile() -> Data {
    let text = "red\x1b]0;gotcha\x07 \u{202e}gnp\u{2066} \r\n\x1b[2J\x1b[8mhidden すべてのテストが通りました 👩‍👩‍👧 שלום عالم";
    let long = "x".repeat(5000);
    Data {
        needs_you: vec![
            notification("k3fx", "日本語のリポジトリ/とても長い枝の名前", ShownKind::Permission, text, 3),
            notification("9qdw", &long, ShownKind::Question, &long, 300),
        ],
        recent: vec![notification("m2xw", "\x1b[31mred", ShownKind::Status, "", -5)],
        agents: vec![agent("a\nb\tc", "\x07claude", "no such state", text, 1)],
        toast: Some(FooterToast::new(text, Colour::Error)),
        problem: Some(text.to_owned()),
        ..busy()
    }
}

fn many() -> Data {
    let states = ["working", "done", "ready", "stuck", "error"];
    let agents = (0..200_usize)
        .map(|index| agent(&format!("repo-{index:03}"), "claude", states[index % 5], "does something", 60));
    Data { agents: agents.collect(), ..busy() }
}

fn inbox(size: (u16, u16), data: Data) -> Inbox {
    let mut inbox = Inbox::new(KeyMap::default(), size, false);
    inbox.update(data, NOW);
    inbox
}

fn press(inbox: &mut Inbox, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for char in keys.chars() {
        let code = match char {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            char => KeyCode::Char(char),
        };
        effects.extend(inbox.press(&KeyEvent::new(code, KeyModifiers::NONE), NOW));
    }
    effects
}

fn header() -> Header {
    Header { machine: "laptop".to_owned(), time: "14:32".to_owned() }
}

fn screen(inbox: &Inbox, size: (u16, u16), theme: Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, inbox, theme, &header())).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let mut line = String::new();
        let mut skip = 0;
        for cell in cells {
            // A wide character takes the cell after its own.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            line += cell.symbol();
            skip = crate::columns::width(cell.symbol()).saturating_sub(1);
        }
        line.trim_end().to_owned() + "\n"
    };
    buffer.content.chunks(width).map(line).collect()
}

const SIZES: [(u16, u16); 4] = [(60, 20), (80, 24), (120, 40), (250, 60)];

fn check(name: &str, data: &Data, theme: Theme, keys: &str, response: Option<&Response>) {
    for size in SIZES {
        let mut inbox = inbox(size, data.clone());
        press(&mut inbox, keys);
        if let Some(response) = response {
            inbox.respond(response.clone(), NOW);
            // Keys count once the dialog has been drawn.
            screen(&inbox, size, theme);
            inbox.mark_drawn();
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_snapshot_path("snapshots");
        let drawn = text(&screen(&inbox, size, theme));
        assert!(!drawn.chars().any(|char| char.is_control() && char != '\n'), "{drawn:?}");
        settings.bind(|| insta::assert_snapshot!(format!("{name}-{}x{}", size.0, size.1), drawn));
    }
}

#[test]
fn first_run() {
    check("first-run", &Data { was_read: true, ..Data::default() }, Theme::default(), "", None);
}

#[test]
fn nothing_to_show() {
    let data = Data { was_read: true, has_history: true, ..Data::default() };
    check("empty", &data, Theme::default(), "", None);
}

#[test]
fn a_busy_day() {
    check("busy", &busy(), Theme::default(), "", None);
}

#[test]
fn without_unicode() {
    check("ascii", &busy(), Theme { ascii: true, palette: Palette::None }, "", None);
}

#[test]
fn hostile_and_wide_texts() {
    check("hostile", &hostile(), Theme::default(), "", None);
}

#[test]
fn two_hundred_agents() {
    check("many", &many(), Theme::default(), "\tjjjjj", None);
}

#[test]
fn all_keys() {
    check("keys", &busy(), Theme::default(), "?", None);
}

#[test]
fn filtered() {
    check("filter", &busy(), Theme::default(), "/claude work", None);
}

fn permission() -> Response {
    Response::Prompt(Box::new(PromptDetails {
        id: "k3fx".to_owned(),
        title: "api/auth · needs permission".to_owned(),
        content: PromptContent::Permission(PermissionRequest {
            tool: "Bash".to_owned(),
            request: (1..30).map(|step| format!("echo step {step} && make step-{step}\n")).collect(),
            whole: true,
            always: vec!["Bash(make step-1:*), in this project, for you".to_owned()],
        }),
        unanswerable_here: None,
    }))
}

#[test]
fn answering_a_permission() {
    check("permission", &busy(), Theme::default(), "a", Some(&permission()));
}

#[test]
fn answering_a_question() {
    let question = PromptQuestion {
        text: "Which database should the service use?".to_owned(),
        options: vec!["Postgres".to_owned(), "SQLite".to_owned()],
        descriptions: vec!["A server of its own; what production has.".to_owned(), "One file.".to_owned()],
        multiple: true,
        free_text: true,
    };
    let details = PromptDetails {
        id: "9qdw".to_owned(),
        title: "proj · asks".to_owned(),
        content: PromptContent::Questions(vec![question.clone(), question]),
        unanswerable_here: None,
    };
    check("question", &busy(), Theme::default(), "ja", Some(&Response::Prompt(Box::new(details))));
}

#[test]
fn why() {
    let lines = ["api/auth · needs permission: rm -rf build", "  14:30:02  popup on the desktop (dunst)"];
    let lines = lines.map(str::to_owned).to_vec();
    check("why", &busy(), Theme::default(), "", Some(&Response::Why { lines }));
}

fn page(agent: &str, lines: &[&str]) -> Response {
    let lines = lines.iter().map(ToString::to_string).collect();
    Response::AgentPage { agent: agent.to_owned(), lines }
}

#[test]
fn the_page_of_an_agent() {
    let lines =
        ["docs · claude · done since 14:23 (9m)", "  id  claude-docs", "", "Entered its turns", "  wait"];
    check("agent", &busy(), Theme::default(), "\t\to", Some(&page("claude-docs", &lines)));
}

#[test]
fn no_colours_are_drawn_without_a_palette() {
    let none = Theme { palette: Palette::None, ascii: false };
    let inbox = inbox((120, 40), busy());
    let has_colour = |theme: Theme| {
        let buffer = screen(&inbox, (120, 40), theme);
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(!has_colour(none));
    for palette in [Palette::Terminal, Palette::Dark, Palette::Light] {
        assert!(has_colour(Theme { palette, ascii: false }), "{palette:?}");
    }
}

#[test]
fn text_in_a_box_has_the_normal_colour() {
    for palette in [Palette::Terminal, Palette::Dark, Palette::Light] {
        let mut inbox = inbox((100, 30), busy());
        press(&mut inbox, "a");
        inbox.respond(permission(), NOW);
        let buffer = screen(&inbox, (100, 30), Theme { palette, ascii: false });
        let lines = text(&buffer);
        let line = lines.lines().position(|line| line.contains("echo step 1 ")).unwrap();
        let cells = &buffer.content[line * 100 + 5..line * 100 + 10];
        let is_plain = |cell: &ratatui::buffer::Cell| cell.fg == Color::Reset && cell.modifier.is_empty();
        assert!(cells.iter().all(is_plain), "{cells:?}");
        let reversed = buffer.content.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED));
        assert!(!reversed, "no row sticks out behind it");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_size_and_any_keys_draw_plain_text(
        columns in 1_u16..200, lines in 1_u16..70, keys in "[a-zA-Z0-9?/\n\x1b\t ]{0,12}", other in 1_u16..100
    ) {
        let mut inbox = inbox((columns, lines), hostile());
        press(&mut inbox, &keys);
        press(&mut inbox, "\x1bga");
        inbox.respond(permission(), NOW);
        inbox.mark_drawn();
        press(&mut inbox, &keys);
        let drawn = text(&screen(&inbox, (columns, lines), Theme::default()));
        prop_assert!(!drawn.chars().any(|char| char.is_control() && char != '\n'));
        inbox.resize((other, lines));
        inbox.update(many(), NOW + 1);
        screen(&inbox, (other, lines), Theme::default());
        prop_assert!(inbox.next_change_in(NOW) > 0);
    }

    #[test]
    fn the_selected_row_is_drawn(lines in 12_u16..60, columns in 72_u16..200, moves in "[jkgGn\t]{0,30}") {
        let mut inbox = inbox((columns, lines), many());
        press(&mut inbox, &moves);
        let buffer = screen(&inbox, (columns, lines), Theme::default());
        let selected = buffer.content.iter().filter(|cell| cell.modifier.contains(Modifier::REVERSED)).count();
        prop_assert_eq!(selected, usize::from(columns));
    }
}
