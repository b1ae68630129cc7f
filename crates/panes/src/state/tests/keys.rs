//! The prefix, pastes, and keys of kitty's protocol.

use super::*;

#[test]
fn the_prefix_is_for_the_program_when_it_is_pressed_twice() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    assert_eq!(written(&session.input(1, PREFIX), &pane), "");
    assert_eq!(session.mode(1), Mode::Prefix);
    assert_eq!(written(&session.input(1, PREFIX), &pane), "\x07");
    assert_eq!(session.mode(1), Mode::Program);
    assert_eq!(written(&session.input(1, "a"), &pane), "a");
}

#[test]
fn a_key_without_a_meaning_after_the_prefix_does_nothing() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    assert_eq!(written(&session.prefix(1, "Q"), &pane), "");
    assert_eq!(session.mode(1), Mode::Program);
}

#[test]
fn the_inbox_the_sidebar_the_help_and_leaving_are_for_one_window() {
    let mut session = Session::with_shell();
    session.attach(2, 100, 30);
    let pane = session.focused(1);
    assert!(session.prefix(1, "i").contains(&Effect::Inbox { client: ClientId(1) }));
    session.state.terminal_back(ClientId(1), session.now);
    session.prefix(1, "b");
    assert_eq!((session.area(1, &pane).x, session.area(2, &pane).x), (0, 16));
    session.prefix(1, "b");
    assert_eq!(session.area(1, &pane).x, 16);
    session.prefix(1, "?");
    assert!(session.drawn(1).text().contains("next pane that rings"));
    assert!(!session.drawn(2).text().contains("next pane that rings"));
    assert_eq!(written(&session.input(1, "q"), &pane), "", "any key closes it");
    assert_eq!(session.mode(1), Mode::Program);
    assert_eq!(leaving(&session.prefix(1, "d")), [1]);
}

#[test]
fn a_paste_is_marked_for_a_program_that_wants_that_and_has_no_end_inside() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let paste = |session: &mut Session, text: &str| {
        let effects = session.input(1, &format!("\x1b[200~{text}\x1b[201~"));
        written(&effects, &pane)
    };
    assert_eq!(paste(&mut session, "one\ntwo\r\nthree"), "one\rtwo\rthree", "lines end as typed ones do");
    session.output(&pane, "\x1b[?2004h");
    assert_eq!(paste(&mut session, "one\ntwo"), "\x1b[200~one\ntwo\x1b[201~");
    assert_eq!(paste(&mut session, "a\x1b[20\x1b1~rm -rf"), "\x1b[200~a[201~rm -rf\x1b[201~");
    session.input(1, PREFIX);
    assert_eq!(paste(&mut session, "x"), "", "a paste is no key");
}

#[test]
fn keys_of_kittys_protocol_reach_the_program_as_they_are() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "\x1b[>11u");
    assert_eq!(session.state.wanted_modes(ClientId(1)).0.kitty_flags, 11);
    for keys in [
        "\x1b[97;5u",
        "\x1b[97;5:2u",
        "\x1b[97;5:3u",
        "\x1b[57441;2u",
        "\x1b[57376u",
        "\x1bOq",
        "\x1b[57;;57u",
    ] {
        assert_eq!(written(&session.input(1, keys), &pane), keys, "{keys:?}");
    }
}

#[test]
fn the_release_of_a_key_that_was_not_for_the_program_is_not_for_it_either() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "\x1b[>3u");
    let effects = session.input(1, "\x1b[103;5u\x1b[103;5:3u");
    assert_eq!((session.mode(1), written(&effects, &pane).as_str()), (Mode::Prefix, ""));
    // After the prefix, a key must be sent with Shift applied.
    assert_eq!(session.state.wanted_modes(ClientId(1)).0.kitty_flags, 0);
    let effects = session.input(1, "\x07");
    assert_eq!(written(&effects, &pane), "\x1b[103;5u", "as the program wants it");
    session.prefix(1, "[");
    let effects = session.input(1, "\x1b[91;1:3u");
    assert_eq!(written(&effects, &pane), "");
}

#[test]
fn a_modifier_alone_is_no_key_after_the_prefix() {
    let mut session = Session::with_shell();
    session.prefix(1, "\x1b[57441;2u|");
    assert_eq!(session.areas(1).len(), 2);
}

#[test]
fn an_answer_of_the_terminal_is_for_no_program_and_is_not_the_person() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.attach(2, 80, 24);
    for answer in
        ["\x1b[?62;4c", "\x1b]11;rgb:0000/0000/0000\x1b\\", "\x1b[?1u", "\x1b[4;7R", "\x1b[?2026;2$y"]
    {
        let effects = session.input(1, answer);
        assert_eq!(written(&effects, &pane), "", "{answer:?}");
        assert!(facts(&effects).is_none(), "{answer:?}");
        assert!(!effects.contains(&Effect::ReportPresence), "{answer:?}");
    }
    assert_eq!(session.state.latest_client(), Some(ClientId(2)));
}

#[test]
fn no_key_is_for_an_ended_program() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.end(&pane, 1);
    for keys in ["a", "\x1b[200~text\x1b[201~", "\x1b[I", "\x07\x07"] {
        assert_eq!(written(&session.input(1, keys), &pane), "", "{keys:?}");
    }
}

#[test]
fn a_program_is_told_of_kittys_protocol_only_where_a_window_has_it() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let answer = |session: &mut Session| written(&session.output(&pane, "\x1b[?u"), &pane);
    assert_eq!(answer(&mut session), "\x1b[?0u", "the terminal has not answered yet");
    assert_eq!(session.input(1, "\x1b[?62;4c"), [], "it is no key");
    assert_eq!(answer(&mut session), "");
    session.attach(2, 80, 24);
    session.input(2, "\x1b[?0u\x1b[?62;c");
    assert_eq!(answer(&mut session), "\x1b[?0u");
    // A program that uses the protocol keeps it.
    session.output(&pane, "\x1b[>5u");
    session.state.detach(ClientId(2));
    assert_eq!(answer(&mut session), "\x1b[?5u");
    session.output(&pane, "\x1b[<u");
    session.input(1, "\x1b[I");
    assert_eq!(answer(&mut session), "");
}
