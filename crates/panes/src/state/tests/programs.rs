//! Output and ends of programs.

use ringer_term::NotificationId;
use ringer_term::probe::Probe;

use super::*;
use crate::pane::Pane;
use crate::state::UNSEEN;
use crate::unread_output::UnreadOutput;

#[test]
fn a_shell_that_exits_closes_its_pane() {
    let (mut session, left, right) = Session::with_two();
    let effects = session.end(&right, 0);
    assert!(effects.contains(&Effect::Forget { pane: right.clone() }), "{effects:?}");
    assert!(!facts(&effects).unwrap().surfaces.contains_key(&format!("pane:{right}")));
    assert_eq!(session.focused(1), left);
}

/// A shell ends with the status of its last command: `false`, and then ctrl-d.
#[test]
fn a_shell_closes_its_pane_whatever_its_last_command_did() {
    let check = |ending: Ending, after: u64, closes: bool| {
        let (mut session, _, right) = Session::with_two();
        session.wait(after);
        let effects = session.state.ended(&right, ending, session.now);
        let is_error = |params: &&Value| params["kind"] == "error";
        let errors = terminal_reports(&effects).into_iter().filter(is_error).count();
        assert_eq!(
            (session.state.pane(&right).is_none(), errors == 0),
            (closes, closes),
            "{ending:?} {after}"
        );
    };
    check(Ending::Exit(1), 1000, true);
    check(Ending::Exit(130), 60_000, true);
    check(Ending::Exit(0), 0, true);
    check(Ending::Signal(1), 0, true);
    // It failed to start.
    check(Ending::Exit(1), 999, false);
    check(Ending::Signal(9), 60_000, false);
    // It was started again.
    let (mut session, _, right) = Session::with_two();
    session.wait(60_000);
    session.state.ended(&right, Ending::Signal(9), session.now);
    session.prefix(1, "r");
    session.end(&right, 1);
    assert_eq!(session.state.pane(&right).unwrap().ending, Some(Ending::Exit(1)));
}

/// The time of its start is unknown then.
#[test]
fn a_shell_that_ended_while_no_server_was_there_closes_its_pane() {
    let mut session = Session::with_shell();
    let pane = Pane::new(PaneId::new("kept"), PathBuf::from("/"), UNSEEN, session.now);
    let id = pane.id.clone();
    session.state.adopt(pane, None, UnreadOutput::default(), session.now);
    session.end(&id, 1);
    assert!(session.state.pane(&id).is_none());
}

#[test]
fn an_unexpected_end_is_told_and_stays_on_the_screen() {
    let mut session = Session::with_shell();
    let pane = session.open(&["/usr/bin/make"], None);
    session.output(&pane, "error: it broke");
    let effects = session.state.ended(&pane, Ending::Signal(9), session.now);
    let reports = terminal_reports(&effects);
    let said = reports.iter().find(|params| params["title"] == "make").unwrap();
    assert_eq!((&said["body"], &said["kind"]), (&"ended by SIGKILL".into(), &"error".into()));
    assert_eq!(said["surface_id"], format!("pane:{pane}"));
    assert!(facts(&effects).is_none_or(|own| own.surfaces.contains_key(&format!("pane:{pane}"))));
    let drawn = session.drawn(1);
    assert!(
        drawn.text().contains("error: it broke") && drawn.text().contains("ended by SIGKILL"),
        "{}",
        drawn.text()
    );
    assert_eq!(drawn.cursor, None);
}

#[test]
fn a_program_that_cannot_be_started_is_told_once_the_hub_knows_its_pane() {
    let mut session = Session::with_shell();
    session.can_start = false;
    let effects = session.prefix(1, "|");
    let pane = session.focused(1);
    let surface = format!("pane:{pane}");
    let is_described =
        |effect: &Effect| matches!(effect, Effect::SetFacts(facts) if facts.surfaces.contains_key(&surface));
    let is_report = |effect: &Effect| matches!(effect, Effect::Report { .. });
    let (described, reported) = (effects.iter().position(is_described), effects.iter().position(is_report));
    assert!(described.is_some() && described < reported, "{effects:?}");
    let reports = terminal_reports(&effects)[0];
    assert_eq!(reports["surface_id"], surface);
    assert_eq!((&reports["body"], &reports["kind"]), (&"no such program".into(), &"error".into()));
}

#[test]
fn a_command_that_succeeds_stays_and_counts_as_unread_without_a_notification() {
    let mut session = Session::with_shell();
    let pane = session.open(&["true"], None);
    let effects = session.end(&pane, 0);
    assert_eq!(terminal_reports(&effects), Vec::<&Value>::new());
    let params = json!({ "surface_id": format!("pane:{pane}") });
    assert!(effects.contains(&Effect::Report { method: ReportMethod::Unread, params }), "{effects:?}");
    assert!(session.state.pane(&pane).is_some());
}

#[test]
fn a_shell_that_cannot_begin_stays() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let effects = session.end(&pane, 1);
    assert_eq!((leaving(&effects), terminal_reports(&effects).len()), (Vec::new(), 1));
    assert_eq!(session.focused(1), pane);
}

#[test]
fn a_question_is_answered_while_the_program_runs() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    assert_eq!(written(&session.output(&pane, "ab\x1b[6n"), &pane), "\x1b[1;3R");
    session.end(&pane, 1);
    // The last output arrives after its end.
    assert_eq!(written(&session.output(&pane, "\x1b[6n"), &pane), "");
}

#[test]
fn a_question_that_was_asked_without_a_server_is_not_answered() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let late = b"late\x1b[6n\x1b]52;c;aGVsbG8=\x07\x1b]777;notify;Build;all green\x07";
    let late = UnreadOutput { new: late, lost: 7, ..UnreadOutput::default() };
    let effects = session.state.unread_output(&pane, late, session.now);
    assert_eq!((written(&effects, &pane).as_str(), copied(&effects)), ("", Vec::new()));
    assert_eq!(terminal_reports(&effects)[0]["body"], "all green");
    let text = session.drawn(1).text();
    assert!(text.contains("late") && text.contains("7 bytes not kept"), "{text}");
}

#[test]
fn what_is_on_the_screen_already_is_heard_and_not_drawn_again() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "first ");
    let late = UnreadOutput { shown: b"first \x1b]777;notify;Build;all green\x07", new: b"second", lost: 0 };
    let effects = session.state.unread_output(&pane, late, session.now);
    assert_eq!(terminal_reports(&effects)[0]["body"], "all green", "the hub may not have been told");
    let text = session.drawn(1).text();
    assert!(text.contains("first second") && text.matches("first").count() == 1, "{text}");
}

#[test]
fn what_a_program_copies_is_for_the_windows_whose_keys_it_has() {
    let (mut session, left, right) = Session::with_two();
    session.attach(2, 80, 24);
    let other = session.open(&[], Some("web"));
    let mut copied = |pane: &PaneId| session.output(pane, "\x1b]52;c;aGVsbG8=\x07");
    let copy = |client: u64| Effect::Copy { client: ClientId(client), text: "hello".to_owned() };
    assert_eq!(copied(&right), [copy(1)]);
    assert_eq!(copied(&other), [copy(2)]);
    assert_eq!(copied(&left), [], "it does not have the keys");
    assert_eq!(session.output(&right, "\x1b]52;c;?\x07"), [], "it does not read what others copied");
}

#[test]
fn a_notification_and_a_title_are_told_to_the_hub() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let effects = session.output(&pane, "\x1b]777;notify;Build;all green\x07\x1b]2;building\x07");
    let reports = terminal_reports(&effects);
    assert_eq!(
        (&reports[0]["body"], &reports[0]["surface_id"]),
        (&"all green".into(), &format!("pane:{pane}").into())
    );
    assert_eq!(facts(&effects).unwrap().surfaces[&format!("pane:{pane}")]["title"], "building");
    assert!(session.drawn(1).text().contains("api · building"));
}

#[test]
fn an_update_that_does_not_end_is_shown_all_the_same() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "\x1b[?2026hhalf");
    assert!(!session.drawn(1).text().contains("half"));
    let deadline = session.state.next_change(session.now).unwrap();
    session.state.end_updates(deadline);
    assert!(session.drawn(1).text().contains("half"));
    assert_eq!(session.state.next_change(deadline), None);
}

#[test]
fn an_update_that_begins_again_and_again_is_shown_when_the_first_is_due() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "\x1b[?2026hhalf");
    let deadline = session.state.next_change(session.now).unwrap();
    session.output(&pane, "\x1b[?2026hmore");
    assert_eq!(session.state.next_change(session.now), Some(deadline));
    // An update that follows another one has the full time.
    session.output(&pane, "\x1b[?2026l\x1b[?2026hnext");
    assert!(session.state.next_change(session.now).unwrap() > deadline);
}

#[test]
fn what_comes_for_a_pane_that_is_closed_is_nothing() {
    let (mut session, left, right) = Session::with_two();
    session.end(&right, 0);
    assert_eq!(session.output(&right, "text\x1b[c"), []);
    assert_eq!(session.end(&right, 1), []);
    assert_eq!(session.state.started(&right, 9, "/dev/pts/9".to_owned(), session.now), []);
    assert_eq!(session.state.send(&right, b"x".to_vec()), None);
    assert_eq!(session.state.close(&right), []);
    assert_eq!(session.focused(1), left);
}

#[test]
fn a_program_that_asks_what_its_terminal_is_is_told_what_its_environment_says() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let mut probe = Probe::new(NotificationId::new("p1").unwrap());
    let asked = String::from_utf8(probe.query_bytes(&[])).unwrap();
    let answers = written(&session.output(&pane, &asked), &pane);
    assert!(probe.feed(answers.as_bytes()), "{answers:?}");
    assert_eq!((probe.name.as_deref(), probe.osc99), (Some("kitty(0.48.2)"), true), "{answers:?}");
    // Split into pieces, and with a parameter.
    let pieces = ["\x1b[", ">0", "q", "x"].map(|piece| written(&session.output(&pane, piece), &pane));
    assert_eq!(pieces, ["", "", "\x1bP>|kitty(0.48.2)\x1b\\", ""]);
}
