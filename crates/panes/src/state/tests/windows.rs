//! Several windows at once.

use super::*;

#[test]
fn the_window_that_was_used_last_decides_how_large_a_pane_is() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    assert_eq!(session.size(&pane), (82, 26));
    session.attach(2, 60, 20);
    assert_eq!(session.size(&pane), (58, 16), "one that comes is used");
    let effects = session.input(1, "a");
    assert_eq!(session.size(&pane), (82, 26));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Resize { .. })), "{effects:?}");
    session.input(2, "\x1b[I");
    assert_eq!(session.size(&pane), (58, 16), "so is one that gets the focus");
    session.input(2, "\x1b[O");
    assert_eq!(session.size(&pane), (58, 16), "but not one that loses it");
    session.wait(1);
    session.state.resize(ClientId(1), 50, 10, session.now);
    assert_eq!(session.size(&pane), (48, 6));
    session.state.detach(ClientId(1));
    assert_eq!(session.size(&pane), (58, 16));
    session.state.detach(ClientId(2));
    assert_eq!(session.size(&pane), (58, 16), "without a window it stays as it is");
}

#[test]
fn two_windows_may_show_two_workspaces_each_in_its_size() {
    let mut session = Session::with_shell();
    let first = session.focused(1);
    session.attach(2, 60, 20);
    session.prefix(2, "c");
    let second = session.focused(2);
    assert_ne!(first, second);
    assert_eq!((session.size(&first), session.size(&second)), ((82, 26), (58, 16)));
    session.input(1, "a");
    assert_eq!((session.size(&first), session.size(&second)), ((82, 26), (58, 16)));
}

#[test]
fn a_small_window_sees_a_part_and_no_more() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.attach(2, 20, 9);
    session.input(1, "a");
    session.output(&pane, &"漢".repeat(40));
    let drawn = session.drawn(2).text();
    let line = drawn.lines().nth(1).unwrap();
    assert_eq!(line, "│漢漢漢漢漢漢漢漢漢│");
}

#[test]
fn a_window_that_leaves_takes_nothing_with_it() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let effects = session.state.detach(ClientId(1));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Forget { .. })), "{effects:?}");
    session.output(&pane, "in the meantime");
    session.attach(2, 100, 30);
    assert!(session.drawn(2).text().contains("in the meantime"));
}

#[test]
fn a_window_of_one_cell_is_a_window() {
    let mut session = Session::new();
    session.attach(1, 1, 1);
    let pane = session.focused(1);
    session.prefix(1, "|");
    session.prefix(1, ",");
    session.mouse(1, 0, (0, 0), 'M');
    session.output(&pane, "漢");
    assert_eq!(session.drawn(1).area(), Area::new(0, 0, 1, 1));
    session.state.resize(ClientId(1), 0, 0, session.now);
    assert!(session.drawn(1).area().is_empty());
}

#[test]
fn what_is_typed_is_seen_at_its_end_and_the_cursor_with_it() {
    let mut session = Session::new();
    session.attach(1, 40, 10);
    session.prefix(1, ",");
    session.input(1, &"abcdefghij".repeat(6));
    let drawn = session.drawn(1);
    let cursor = drawn.cursor.unwrap();
    let before = drawn.cell(cursor.x - 1, cursor.y).unwrap().character;
    assert_eq!((cursor.y, before), (9, Some('j')), "{}", drawn.text());
    session.state.resize(ClientId(1), 1, 10, session.now);
    assert!(session.drawn(1).cursor.is_none_or(|cursor| cursor.x == 0));
}

#[test]
fn a_window_that_comes_back_shows_what_it_showed() {
    let mut session = Session::with_shell();
    let first = session.focused(1);
    session.attach(2, 100, 30);
    session.prefix(2, "c");
    session.prefix(1, "b");
    let second = session.focused(2);
    let shown = [1, 2].map(|client| session.state.view(ClientId(client)).unwrap().shown());
    session.state.detach(ClientId(1));
    session.state.detach(ClientId(2));
    for (client, own) in (3..).zip(&shown) {
        let facts = ClientFacts { shown: Some(own.clone()), ..Session::facts(100, 30) };
        session.state.attach(ClientId(client), facts, session.now);
        assert_eq!(session.state.view(ClientId(client)).unwrap().shown(), *own);
    }
    assert_eq!([session.focused(3), session.focused(4)], [first, second]);
    // A window cannot return to a workspace that no longer exists.
    let gone = WindowView { workspace: "panes:gone".to_owned(), has_sidebar: true };
    let facts = ClientFacts { shown: Some(gone), ..Session::facts(100, 30) };
    session.state.attach(ClientId(5), facts, session.now);
    assert!(session.state.shown_workspace(ClientId(5)).is_some());
}

#[test]
fn without_a_sidebar_the_footer_counts_what_is_unread_elsewhere() {
    let mut session = Session::new();
    session.attach(1, 60, 20);
    let first = session.focused(1);
    session.prefix(1, "c");
    session.prefix(1, "c");
    assert!(!session.footer(1).contains('●'), "{}", session.footer(1));
    session.ring(&first);
    let workspace_id = session.state.workspaces()[1].id.clone();
    session.order(HubOrder::Badge { workspace_id, badge: 2 });
    let ends_with = |session: &Session| session.footer(1).ends_with("  ● 3");
    assert!(ends_with(&session), "{}", session.footer(1));
    // With any other contents of the footer, and in small windows.
    session.order(HubOrder::Toast { text: Some("x".repeat(100)) });
    for keys in ["", ",", "\x1b", "x"] {
        session.input(1, if keys == "x" { "\x07x" } else { keys });
        assert!(ends_with(&session), "{keys:?}: {}", session.footer(1));
    }
    session.input(1, "n");
    session.state.resize(ClientId(1), 20, 8, session.now);
    assert!(ends_with(&session), "{}", session.footer(1));
    // The focused pane does not count as elsewhere.
    session.prefix(1, "n");
    assert_eq!(session.focused(1), first);
    assert!(session.footer(1).ends_with("● 2"), "{}", session.footer(1));
    session.state.resize(ClientId(1), 100, 20, session.now);
    assert!(!session.footer(1).contains('●'), "the sidebar says it: {}", session.footer(1));
    session.prefix(1, "b");
    assert!(session.footer(1).ends_with("● 2"), "{}", session.footer(1));
}

#[test]
fn a_narrow_footer_keeps_what_is_asked() {
    let mut session = Session::new();
    session.attach(1, 40, 10);
    session.order(HubOrder::Toast { text: Some("settings: notify.rign is unknown".to_owned()) });
    assert!(session.footer(1).contains("^g n next unread"), "{}", session.footer(1));
    session.prefix(1, "x");
    assert_eq!(session.footer(1), " Close api and end its program?  y yes");
    session.input(1, "n");
    session.prefix(1, "[");
    assert_eq!(session.footer(1), " ↑↓ scroll   / search   q back");
    session.input(1, "q");
    session.state.resize(ClientId(1), 24, 10, session.now);
    assert_eq!(session.footer(1), " settings: notify.rign…");
    session.input(1, PREFIX);
    assert_eq!(session.footer(1), " ^g n next unread");
    session.input(1, "\x1b");
    session.order(HubOrder::Toast { text: None });
    session.state.resize(ClientId(1), 14, 10, session.now);
    assert_eq!(session.footer(1), " ^g ? keys");
    session.prefix(1, "x");
    assert!(session.footer(1).starts_with(" Close?  y"), "{}", session.footer(1));
}
