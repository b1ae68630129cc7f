//! Focus of panes, and focus events for programs.

use super::*;

/// Turns focus events on.
const WANTS: &str = "\x1b[?1004h";

#[test]
fn keys_and_the_mouse_choose_a_pane() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "-");
    let below = session.focused(1);
    for (keys, expect) in [
        ("h", &left),
        ("\x1b[C", &right),
        ("j", &below),
        ("k", &right),
        ("\x1b[D", &left),
        ("\x1b[D", &left),
        ("l", &right),
        ("\x1b[B", &below),
        ("\x1b[A", &right),
        ("o", &below),
        ("\t", &left),
    ] {
        session.prefix(1, keys);
        assert_eq!(session.focused(1), *expect, "{keys:?}");
    }
    session.mouse(1, 0, (70, 20), 'M');
    assert_eq!(session.focused(1), below);
}

#[test]
fn typed_keys_are_for_the_pane_that_has_them() {
    let (mut session, left, right) = Session::with_two();
    let effects = session.input(1, "ls\r");
    assert_eq!((written(&effects, &right).as_str(), written(&effects, &left).as_str()), ("ls\r", ""));
    session.prefix(1, "h");
    assert_eq!(written(&session.input(1, "\x1b[A"), &left), "\x1b[A", "as the terminal sent it");
}

#[test]
fn a_zoomed_pane_is_alone_until_another_one_has_the_keys() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "z");
    assert_eq!(session.areas(1), [(right.clone(), Area::new(16, 0, 84, 28))]);
    assert_eq!(
        (session.size(&right), session.size(&left)),
        ((82, 26), (40, 26)),
        "a hidden one keeps its size"
    );
    assert!(session.drawn(1).text().contains("zoomed"));
    session.prefix(1, "z");
    assert_eq!((session.areas(1).len(), session.size(&right)), (2, (40, 26)));
    session.prefix(1, "z");
    session.prefix(1, "h");
    assert_eq!((session.areas(1).len(), session.focused(1)), (2, left));
}

#[test]
fn one_pane_alone_is_not_zoomed() {
    let mut session = Session::with_shell();
    session.prefix(1, "z");
    assert!(!session.drawn(1).text().contains("zoomed"));
}

#[test]
fn borders_are_moved_by_keys() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "H");
    assert_eq!((session.size(&left), session.size(&right)), ((38, 26), (42, 26)));
    session.prefix(1, "L");
    session.prefix(1, "\x1b[1;5C");
    assert_eq!((session.size(&left), session.size(&right)), ((42, 26), (38, 26)));
    session.prefix(1, "-");
    let below = session.focused(1);
    session.prefix(1, "K");
    assert_eq!((session.size(&right), session.size(&below)), ((38, 10), (38, 14)));
    session.prefix(1, "J");
    assert_eq!((session.size(&right), session.size(&below)), ((38, 12), (38, 12)));
}

#[test]
fn workspaces_are_chosen_by_step_and_by_number() {
    let mut session = Session::with_shell();
    session.prefix(1, "c");
    session.prefix(1, "c");
    let shown = |session: &Session| session.state.shown_workspace(ClientId(1)).unwrap().name.clone();
    for (keys, expect) in
        [(")", "api"), ("(", "api 3"), ("\x1b[5~", "api 2"), ("\x1b[6~", "api 3"), ("1", "api"), ("9", "api")]
    {
        session.prefix(1, keys);
        assert_eq!(shown(&session), expect, "{keys:?}");
    }
}

#[test]
fn the_next_pane_that_rings_is_found_in_any_workspace() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "c");
    let other = session.focused(1);
    session.prefix(1, "1");
    session.prefix(1, "n");
    assert_eq!(session.focused(1), right);
    assert!(session.footer(1).contains("no other pane rings"), "{}", session.footer(1));
    session.ring(&left);
    session.ring(&other);
    session.prefix(1, "n");
    assert_eq!(session.focused(1), other, "those behind come first");
    session.prefix(1, "n");
    assert_eq!(session.focused(1), left, "then those before");
    session.prefix(1, "n");
    assert_eq!(session.focused(1), other);
}

#[test]
fn a_program_is_told_when_its_pane_gets_and_loses_the_keys() {
    let (mut session, left, right) = Session::with_two();
    session.output(&left, WANTS);
    session.output(&right, WANTS);
    let effects = session.prefix(1, "h");
    assert_eq!((written(&effects, &left).as_str(), written(&effects, &right).as_str()), ("\x1b[I", "\x1b[O"));
    let effects = session.prefix(1, "c");
    assert_eq!(written(&effects, &left), "\x1b[O", "another workspace is shown");
    let effects = session.order(HubOrder::Focus { surface_id: format!("pane:{right}") });
    assert_eq!((written(&effects, &left).as_str(), written(&effects, &right).as_str()), ("", "\x1b[I"));
    let effects = session.prefix(1, "-");
    assert_eq!(written(&effects, &right), "\x1b[O", "a new pane has the keys");
    let below = session.focused(1);
    let effects = session.end(&below, 0);
    assert_eq!(written(&effects, &right), "\x1b[I", "and is closed");
}

#[test]
fn a_program_is_told_when_the_window_gets_and_loses_the_focus() {
    let (mut session, left, right) = Session::with_two();
    let effects = session.input(1, "\x1b[O");
    assert_eq!(written(&effects, &right), "", "only those that want to know");
    session.input(1, "\x1b[I");
    session.output(&left, WANTS);
    session.output(&right, WANTS);
    assert_eq!(written(&session.input(1, "\x1b[O"), &right), "\x1b[O");
    let effects = session.order(HubOrder::Focus { surface_id: format!("pane:{left}") });
    assert_eq!(written(&effects, &left), "", "the window has not got the focus");
    assert_eq!(written(&session.input(1, "\x1b[I"), &left), "\x1b[I");
}

#[test]
fn a_program_has_the_focus_as_long_as_one_window_has_it() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.attach(2, 100, 30);
    session.output(&pane, WANTS);
    session.input(2, "\x1b[I");
    assert_eq!(written(&session.input(1, "\x1b[O"), &pane), "");
    assert_eq!(written(&session.state.detach(ClientId(2)), &pane), "\x1b[O");
}
