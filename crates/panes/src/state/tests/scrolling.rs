//! Scroll mode, and search in the scrollback.

use super::*;

/// A window of 102 × 14 with a shell of 84 × 10 that has written the lines 0 to 99.
fn scrolled() -> (Session, PaneId) {
    let mut session = Session::new();
    session.attach(1, 102, 14);
    let pane = session.focused(1);
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    session.output(&pane, &lines.join("\r\n"));
    (session, pane)
}

fn back(session: &Session, pane: &PaneId) -> usize {
    session.state.pane(pane).unwrap().emulator.scrolled()
}

#[test]
fn keys_scroll_and_none_is_for_the_program() {
    let (mut session, pane) = scrolled();
    session.prefix(1, "[");
    assert_eq!(session.mode(1), Mode::Scroll);
    for (keys, expect) in [
        ("k", 1),
        ("\x1b[A", 2),
        ("j", 1),
        ("\x1b[B", 0),
        ("\x1b[5~", 9),
        ("\x02", 18),
        ("\x06", 9),
        (" ", 0),
        ("g", 90),
        ("G", 0),
        ("\x1b[H", 90),
        ("\x1b[F", 0),
    ] {
        let effects = session.input(1, keys);
        assert_eq!((back(&session, &pane), written(&effects, &pane).as_str()), (expect, ""), "{keys:?}");
    }
    session.input(1, "g");
    assert!(session.drawn(1).text().contains("90 lines back"));
    assert!(session.drawn(1).text().contains("line 0\n") || session.drawn(1).text().contains("line 0 "));
    for leave in ["q", "\x1b", "\x03"] {
        session.prefix(1, "[");
        session.input(1, "g");
        session.input(1, leave);
        assert_eq!((session.mode(1), back(&session, &pane)), (Mode::Program, 0), "{leave:?}");
    }
}

#[test]
fn what_comes_in_the_meantime_does_not_move_what_is_read() {
    let (mut session, pane) = scrolled();
    session.prefix(1, "[");
    session.input(1, "\x1b[5~");
    let before = session.drawn(1).cell(17, 1).cloned();
    session.output(&pane, "\r\nmore\r\nand more");
    assert_eq!((session.drawn(1).cell(17, 1).cloned(), back(&session, &pane)), (before, 11));
}

#[test]
fn a_scroll_region_does_not_lead_beyond_what_was_kept() {
    let (mut session, pane) = scrolled();
    session.prefix(1, "[");
    session.input(1, "g");
    session.output(&pane, "\x1b[2;5r\x1b[5;1H\n\n\n\n\n\n");
    assert_eq!(back(&session, &pane), 90);
    assert!(session.drawn(1).text().contains("line 0"));
}

#[test]
fn a_text_is_found_upwards_and_again() {
    let (mut session, pane) = scrolled();
    session.prefix(1, "/");
    session.input(1, "line 5");
    assert!(session.footer(1).contains("search: line 5"));
    session.input(1, "\r");
    assert_eq!(session.mode(1), Mode::Scroll);
    let found = |session: &Session| {
        let emulator = &session.state.pane(&pane).unwrap().emulator;
        let text = emulator.selected_text().unwrap_or_default();
        (text, back(session, &pane))
    };
    let (text, first) = found(&session);
    assert_eq!(text, "line 5");
    session.input(1, "n");
    let (text, second) = found(&session);
    assert_eq!((text.as_str(), second > first || first == 0), ("line 5", true), "{first} {second}");
    session.input(1, "N");
    assert_eq!(found(&session).0, "line 5");
    let effects = session.input(1, "y");
    assert_eq!((copied(&effects), session.mode(1)), (vec!["line 5"], Mode::Program));
}

#[test]
fn signs_in_a_search_mean_themselves() {
    let (mut session, pane) = scrolled();
    session.output(&pane, "\r\na.b <tag> [x] · done → next\\ $5 ^a {2} #1 & -~");
    for text in ["a.b", "<tag>", "[x]", "·", "→", "\\", "$5", "^a", "{2}", "#1", "& -~", "TAG"] {
        session.prefix(1, "/");
        session.input(1, &format!("{text}\r"));
        let found = session.state.pane(&pane).unwrap().emulator.selected_text();
        let is_found = found.as_deref() == Some(text);
        assert_eq!(is_found, text != "TAG", "{text:?} {found:?}");
        session.input(1, "q");
    }
}

#[test]
fn what_is_not_found_is_said() {
    let (mut session, _) = scrolled();
    session.prefix(1, "/");
    session.input(1, "nothing of that\r");
    session.input(1, "q");
    assert!(session.footer(1).contains("not found: nothing of that"), "{}", session.footer(1));
}

#[test]
fn escape_in_a_search_goes_back_to_what_was_before() {
    let (mut session, pane) = scrolled();
    session.prefix(1, "/");
    session.input(1, "abc\x1b");
    assert_eq!(session.mode(1), Mode::Program);
    session.prefix(1, "[");
    session.input(1, "g/abc\x1b");
    assert_eq!((session.mode(1), back(&session, &pane)), (Mode::Scroll, 90));
}

#[test]
fn scroll_mode_ends_when_another_pane_has_the_keys() {
    let (mut session, _) = scrolled();
    session.prefix(1, "|");
    session.prefix(1, "[");
    session.mouse(1, 0, (20, 3), 'M');
    assert_eq!(session.mode(1), Mode::Program);
}

#[test]
fn what_is_found_is_not_said_to_be_missing() {
    let (mut session, _) = scrolled();
    session.prefix(1, "/");
    session.input(1, "nowhere\r");
    assert!(session.drawn(1).text().contains("not found: nowhere"));
    session.input(1, "/");
    session.input(1, "line 12\r");
    assert!(!session.drawn(1).text().contains("not found"));
}
