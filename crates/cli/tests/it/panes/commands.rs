//! `open`, `attach`, `send`, `surfaces` and `workspaces`, and what they refuse.

use std::process::Stdio;

use test_support::{HangingDirectory, until};

use super::session::Session;

#[test]
fn panes_are_listed_and_typed_into_from_outside() {
    let session = Session::new();
    let surface = session.open("tests", "read line; echo got $line > got; read line");
    assert!(surface.starts_with("pane:"), "{surface}");
    until("the hub knows it", || session.surface("tests")["tty"].is_string());
    let listed = session.surface("tests");
    assert_eq!((&listed["id"], &listed["host"]), (&surface.clone().into(), &"panes".into()), "{listed}");
    assert_eq!((&listed["workspace"], &listed["unread"]), (&"repository".into(), &0.into()), "{listed}");
    for field in ["title", "agent", "state", "focused"] {
        assert!(listed.get(field).is_some(), "{field}: {listed}");
    }
    session.run(&["send", "tests", "hello there"]);
    assert_eq!(session.line_of("got"), "got hello there");

    session.run(&["open", "-d", "--name", "other", "--workspace", "api", "--", "cat"]);
    let workspaces = session.run(&["workspaces"]);
    assert!(workspaces.contains("repository") && workspaces.contains("api"), "{workspaces}");
    let table = session.run(&["surfaces"]);
    assert!(table.contains("tests") && table.contains("other"), "{table}");
    let missing = session.hub.fails(&["send", "nothing", "x"], 65);
    assert!(missing.contains("no pane is called") && missing.contains("hint: ringer surfaces"), "{missing}");
}

#[test]
fn uninstall_does_not_leave_programs_behind() {
    let session = Session::new();
    session.open("job", "read line");
    until("the session is saved", || session.hub.base.home().join("panes.json").exists());
    let refused = session.hub.fails(&["uninstall", "--yes"], 69);
    assert!(refused.contains("panes are open (1)") && refused.contains("hint: ringer attach"), "{refused}");
}

#[test]
fn an_agent_may_not_type_into_a_pane() {
    let session = Session::new();
    session.open("victim", "read line; echo $line > typed; read line");
    let agent = "echo '{\"hook_event_name\":\"SessionStart\",\"session_id\":\"s1\",\"source\":\"startup\",\"cwd\":\"'$PWD'\"}' \
                 | \"$RINGER\" hook claude SessionStart > /dev/null; \"$RINGER\" send victim yes 2> said; echo $? > exit; read line";
    session.open("agent", agent);
    assert_eq!(session.line_of("exit"), "77");
    assert!(session.line_of("said").contains("must not type into a pane"));
    assert!(!session.file("typed").exists());
}

#[test]
fn panes_are_not_shown_in_a_pane_or_without_a_terminal() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("\"$RINGER\" attach; echo exit=$?");
    assert_eq!(window.number_after("exit="), 64);
    window.until("this terminal is a pane itself");
    window.until("hint: ringer open");
    // Without a terminal.
    let refused = session.hub.fails(&["attach"], 69);
    assert!(refused.contains("panes need a terminal"), "{refused}");
    // A pane is opened beside, and not inside.
    window.command("\"$RINGER\" open -- sh -c 'echo beside-$((40+2)); read line'");
    window.until("beside-42");
}

#[test]
fn commands_for_running_panes_start_none() {
    let session = Session::new();
    for arguments in [&["detach"][..], &["send", "x", "y"]] {
        let failed = session.hub.fails(arguments, 69);
        assert!(failed.contains("no panes are open") && failed.contains("hint: ringer open"), "{failed}");
    }
    assert!(session.with_words(&["panes"]).is_empty());
}

#[test]
fn a_home_that_hangs_is_told_of() {
    let Some(hanging) = HangingDirectory::new() else { return };
    let session = Session::new();
    let home = hanging.path().join("home");
    let mut command = session.hub.ringer(&["open", "-d"]);
    let started = command.env("RINGER_HOME", &home).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let output = started.and_then(std::process::Child::wait_with_output).expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains(&format!("{} does not answer", home.display())), "{said}");
}

#[test]
fn open_shows_its_pane_in_a_terminal_that_shows_none() {
    let session = Session::new();
    let mut window = session.window(&["open", "--", "sh", "-c", "echo shown-$((40+2)); read line"], 24, 80);
    window.until("shown-42");
    window.press("d");
    assert!(window.end().1.success());
}
