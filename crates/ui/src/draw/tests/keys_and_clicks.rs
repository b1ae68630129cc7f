//! Effects of keys, clicks and answers on the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;

#[test]
fn the_page_of_an_agent_is_reloaded_on_changes() {
    let mut inbox = inbox((100, 30), busy());
    let asks = |effects: &[Effect], agent: &str, verbose: bool| {
        let request = Request::AgentPage { agent: agent.to_owned(), width: 94, verbose, ascii: false };
        assert_eq!(effects, [Effect::Request(request)]);
    };
    asks(&press(&mut inbox, "o"), "claude-api/auth", false);
    assert!(inbox.update(busy(), NOW).is_empty(), "one reading at a time");
    asks(&inbox.respond(page("claude-api/auth", &["before"]), NOW), "claude-api/auth", false);
    assert!(inbox.respond(page("claude-api/auth", &["now"]), NOW).is_empty());
    assert!(inbox.respond(page("codex-proj", &["of another"]), NOW).is_empty());
    let drawn = text(&screen(&inbox, (100, 30), Theme::default()));
    assert!(drawn.contains("now") && !drawn.contains("before") && !drawn.contains("of another"), "{drawn}");
    asks(&press(&mut inbox, "v"), "claude-api/auth", true);
    inbox.respond(page("claude-api/auth", &["everything"]), NOW);
    assert_eq!(press(&mut inbox, "a"), [Effect::Request(Request::Prompt { id: "k3fx".to_owned() })]);
    press(&mut inbox, "o\x1b");
    assert_eq!(*inbox.view(), View::List);
    // A notification that no agent sent has no page.
    press(&mut inbox, "Go");
    assert_eq!(*inbox.view(), View::List);
    let drawn = text(&screen(&inbox, (100, 30), Theme::default()));
    assert!(drawn.contains("It is not known which agent this is from."), "{drawn}");
}

#[test]
fn a_long_text_is_scrolled_to_its_end_and_no_further() {
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}.")).collect();
    let mut inbox = inbox((80, 24), busy());
    inbox.respond(Response::Why { lines }, NOW);
    let shown = |inbox: &Inbox| text(&screen(inbox, (80, 24), Theme::default()));
    assert!(shown(&inbox).contains("line 19.") && !shown(&inbox).contains("line 20."));
    press(&mut inbox, "G");
    assert!(shown(&inbox).contains("line 99.") && shown(&inbox).contains("line 80."));
    press(&mut inbox, "   k");
    assert!(shown(&inbox).contains("line 79.") && !shown(&inbox).contains("line 99."));
    let wheel =
        MouseEvent { kind: MouseEventKind::ScrollUp, column: 5, row: 5, modifiers: KeyModifiers::NONE };
    assert!(inbox.mouse(wheel, NOW).is_empty());
    assert!(shown(&inbox).contains("line 76.") && !shown(&inbox).contains("line 96."));
}

#[test]
fn a_long_answer_shows_the_editor_hint() {
    let shown = |inbox: &Inbox| text(&screen(inbox, (60, 30), Theme::default()));
    let mut inbox = inbox((60, 30), busy()).editor(Some("vim\x1b".to_owned()));
    press(&mut inbox, "a");
    inbox.respond(permission(), NOW);
    inbox.mark_drawn();
    let ctrl_g = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL);
    assert!(inbox.press(&ctrl_g, NOW).is_empty(), "nothing is typed");
    press(&mut inbox, "4not now");
    assert!(!shown(&inbox).contains("vim"));
    assert_eq!(inbox.press(&ctrl_g, NOW), [Effect::Edit("not now".to_owned())]);
    press(&mut inbox, &", because ".repeat(5));
    assert!(shown(&inbox).contains("ctrl-g goes on in vim"), "{}", shown(&inbox));
    inbox.edited("no\nnever\n", NOW);
    assert!(!shown(&inbox).contains("vim"), "the line is short again");
    assert!(shown(&inbox).contains("> no never"), "{}", shown(&inbox));
    inbox.edited(&"x".repeat(100), NOW);
    assert!(shown(&inbox).contains("ctrl-g goes on in vim"));
    assert!(inbox.next_change_in(NOW) <= 5000);
    inbox.tick(NOW + 5000);
    assert!(!shown(&inbox).contains("vim"), "it is over after five seconds");
}

#[test]
fn a_prompt_answered_elsewhere_ends_the_dialog() {
    let mut inbox = inbox((100, 30), busy());
    press(&mut inbox, "a");
    inbox.respond(permission(), NOW);
    inbox.mark_drawn();
    inbox.update(Data { needs_you: Vec::new(), ..busy() }, NOW);
    let drawn = text(&screen(&inbox, (100, 30), Theme::default()));
    assert!(drawn.contains("It is no longer open"), "{drawn}");
    assert!(press(&mut inbox, "1").is_empty(), "nothing is sent any more");
    assert!(text(&screen(&inbox, (100, 30), Theme::default())).contains("AGENTS"), "any key closes it");
}

#[test]
fn a_late_prompt_does_not_open_after_another_key() {
    let mut inbox = inbox((100, 30), busy());
    for keys in ["a/", "aj", "ag"] {
        press(&mut inbox, keys);
        inbox.respond(permission(), NOW);
        assert!(!matches!(inbox.view(), View::Dialog(_)), "{keys}");
        press(&mut inbox, "\x1bg");
    }
    press(&mut inbox, "a");
    inbox.respond(permission(), NOW);
    assert!(matches!(inbox.view(), View::Dialog(_)));
    assert!(press(&mut inbox, "123").is_empty(), "it was not drawn yet");
    inbox.mark_drawn();
    assert!(press(&mut inbox, "1").is_empty(), "its end was not on the screen");
    assert_eq!(press(&mut inbox, "3").len(), 1, "it can be refused");
}

#[test]
fn unloaded_notifications_are_counted_unless_filtered() {
    let mut inbox = inbox((100, 30), Data { needs_you_unlisted: 2498, ..busy() });
    let drawn = |inbox: &Inbox| text(&screen(inbox, (100, 30), Theme::default()));
    assert!(
        drawn(&inbox).contains("2500 need you") && drawn(&inbox).contains("1–2 of 2500"),
        "{}",
        drawn(&inbox)
    );
    press(&mut inbox, "/");
    press(&mut inbox, "proj");
    assert!(!drawn(&inbox).contains("of 2500"), "{}", drawn(&inbox));
}

#[test]
fn a_failed_load_is_not_a_first_run() {
    let data = Data { problem: Some("the hub cannot start".to_owned()), ..Data::default() };
    let mut inbox = inbox((100, 30), data);
    let drawn = text(&screen(&inbox, (100, 30), Theme::default()));
    assert!(drawn.contains("the hub cannot start") && !drawn.contains("Welcome"), "{drawn}");
    assert!(!drawn.contains("nothing needs you"), "{drawn}");
    assert!(press(&mut inbox, "\n").is_empty());
}

#[test]
fn a_click_selects_and_a_second_click_goes_there() {
    let mut inbox = inbox((120, 40), busy());
    let drawn = text(&screen(&inbox, (120, 40), Theme::default()));
    let line = drawn.lines().position(|line| line.contains("m2xw")).unwrap();
    let row = u16::try_from(line).unwrap();
    let click = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 5,
        row,
        modifiers: KeyModifiers::NONE,
    };
    assert!(inbox.mouse(click, NOW).is_empty());
    let goes = Effect::Request(Request::GoTo { id: "m2xw".to_owned() });
    assert_eq!(inbox.mouse(click, NOW), [goes]);
}
