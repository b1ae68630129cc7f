//! `open`, `attach`, `send`, `surfaces` and `workspaces`, and what they refuse.

use std::process::Stdio;

use serde_json::{Value, json};
use test_support::{HangingDirectory, until};

use super::raw_client::{ANSWER, REQUEST, RawClient};
use super::session::{RINGER, Session};

/// Makes the shell an agent, as Claude Code says that it starts.
pub(crate) const BECOME_AGENT: &str = "echo '{\"hook_event_name\":\"SessionStart\",\"session_id\":\"s1\",\"source\":\"startup\",\"cwd\":\"'$PWD'\"}' \
    | \"$RINGER\" hook claude SessionStart > /dev/null";

/// Writes the line that is typed into its pane to a file.
fn writes_line_to(file: &str) -> String {
    format!("read line; echo $line > {file}; read line")
}

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
    session.run(&["pane", "send", "tests", "hello there"]);
    assert_eq!(session.line_of("got"), "got hello there");

    session.run(&["open", "-d", "--name", "other", "--workspace", "api", "--", "cat"]);
    let workspaces = session.run(&["panes", "--workspaces"]);
    assert!(workspaces.contains("repository") && workspaces.contains("api"), "{workspaces}");
    let table = session.run(&["panes"]);
    assert!(table.contains("tests") && table.contains("other"), "{table}");
    let missing = session.hub.fails(&["pane", "send", "nothing", "x"], 65);
    assert!(missing.contains("no pane is called") && missing.contains("hint: ringer panes"), "{missing}");
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
    let send = "\"$RINGER\" pane send victim yes 2> said; echo $? > exit; read line";
    session.open("agent", &format!("{BECOME_AGENT}; {send}"));
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
    // Its terminal decides, and not its environment, which `su -` does not have.
    window.command("clear; env -u RINGER_SURFACE -u RINGER_WORKSPACE \"$RINGER\" attach; echo again=$?");
    assert_eq!(window.number_after("again="), 64);
    // Without a terminal.
    let refused = session.hub.fails(&["attach"], 69);
    assert!(refused.contains("panes need a terminal"), "{refused}");
    // A pane is opened beside, and not inside.
    window.command("\"$RINGER\" open -- sh -c 'echo beside-$((40+2)); read line'");
    window.until("beside-42");
}

/// A server of tmux keeps the environment of the pane in which it was started, for all its later sessions.
#[test]
fn panes_are_shown_in_a_terminal_that_was_started_in_a_pane() {
    let session = Session::new();
    let mut window = session.attach();
    let surface = format!("RINGER_SURFACE={}", session.surfaces()[0]["id"].as_str().expect("an id"));
    let with_environment = |arguments: &[&str]| {
        session.terminal(
            &[&["env", &surface, "RINGER_WORKSPACE=panes:x", RINGER], arguments].concat(),
            24,
            80,
        )
    };
    let mut other = with_environment(&["attach"]);
    other.until("$ ");
    other.press("d");
    assert!(other.end().1.success());
    window.press("d");
    until("no window is left", || session.with_words(&["attach"]).is_empty());
    // No window shows panes, so this one does.
    let other = with_environment(&["open", "--", "sh", "-c", "echo shown-$((40+2)); read line"]);
    other.until("shown-42");
}

#[test]
fn commands_for_running_panes_start_none() {
    let session = Session::new();
    for arguments in [&["detach"][..], &["pane", "send", "x", "y"]] {
        let failed = session.hub.fails(arguments, 69);
        assert!(failed.contains("no panes are open") && failed.contains("hint: ringer open"), "{failed}");
    }
    assert!(session.with_words(&["pane-server"]).is_empty());
}

/// The server and the keeper need some for each pane. Their programs have the limit of the shell, as long as the keeper can start them so.
#[test]
fn there_may_be_more_panes_than_files_that_a_shell_has_open() {
    let session = Session::new();
    let pane = "sh -c \"ulimit -Sn > limit-$number; read line\"";
    let open = format!("\"$RINGER\" open -d --name p$number -- {pane} || exit 1");
    let script = format!("ulimit -Sn 40; for number in $(seq 45); do {open}; done");
    let mut command = session.hub.program("sh");
    let output =
        command.args(["-c", &script]).current_dir(session.directory()).envs(session.variables()).output();
    assert!(output.expect("it runs").status.success());
    assert_eq!(session.surfaces().len(), 45);
    assert_eq!(session.line_of("limit-1"), "40");
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

#[test]
fn open_shows_its_pane_and_not_the_workspace_that_was_shown_before() {
    let session = Session::new();
    let mut window = session.attach();
    window.press("d");
    assert!(window.end().1.success());
    let script = writes_line_to("typed");
    let arguments = ["open", "--workspace", "zeta", "--name", "zz1", "--", "sh", "-c", &script];
    let mut window = session.window(&arguments, 24, 80);
    window.until("zz1");
    window.command("for zeta");
    assert_eq!(session.line_of("typed"), "for zeta");
    window.press("d");
    assert!(window.end().1.success());
    // The first workspace is another one.
    session.run(&["open", "-d", "--name", "newest", "--", "cat"]);
    until("the hub knows it", || session.surfaces().iter().any(|surface| surface["name"] == "newest"));
    assert_eq!(session.surface("newest")["workspace"], "zeta");
}

#[test]
fn a_window_goes_to_another_workspace_if_it_is_told_to() {
    let session = Session::new();
    let mut window = session.attach();
    let opened = |go: &str, workspace: &str, script: &str| {
        let arguments = ["open", go, "--json", "--workspace", workspace, "--", "sh", "-c", script];
        crate::ringer::json(&session.run(&arguments))["is_shown"].clone()
    };
    assert_eq!(opened("--detached", "behind", &writes_line_to("behind")), false);
    assert_eq!(opened("--go", "other", &writes_line_to("other")), true);
    window.command("for the other");
    assert_eq!(session.line_of("other"), "for the other");
    assert!(!session.file("behind").exists());
}

#[test]
fn a_command_in_a_pane_takes_the_keys_only_from_the_person_who_typed_it() {
    let session = Session::new();
    let mut window = session.attach();
    session.run(&["open", "-d", "--workspace", "back", "--name", "script", "--", "sh"]);
    session.run(&["pane", "send", "script", "\"$RINGER\" open --name helper -- sleep 1000; echo > opened"]);
    session.line_of("opened");
    until("the hub knows it", || session.surfaces().iter().any(|surface| surface["name"] == "helper"));
    assert_eq!(session.surface("helper")["workspace"], "back");
    let script = writes_line_to("beside");
    window
        .command(&format!("echo > first; \"$RINGER\" open --name beside -- sh -c '{script}'; echo > second"));
    session.line_of("first");
    session.line_of("second");
    window.command("for the new one");
    assert_eq!(session.line_of("beside"), "for the new one");
}

#[test]
fn an_agent_with_a_terminal_leaves_the_keys_where_they_are() {
    let session = Session::new();
    let mut window = session.attach();
    let open = "\"$RINGER\" open --name helper -- sleep 1000; echo > opened";
    session.open("agent", &format!("{BECOME_AGENT}; {open}; {}", writes_line_to("answer")));
    session.line_of("opened");
    window.command("yes");
    assert_eq!(session.line_of("answer"), "yes");
}

#[test]
fn a_name_that_could_not_be_read_is_refused() {
    let session = Session::new();
    for option in ["--name", "--workspace"] {
        for blank in ["", " ", "\u{200b}\t"] {
            let refused = session.hub.fails(&["open", "-d", option, blank], 64);
            assert!(refused.contains(&format!("{option} is empty")), "{refused}");
        }
        let refused = session.hub.fails(&["open", "-d", option, &"ä".repeat(101)], 64);
        assert!(refused.contains("101 characters, and at most 100"), "{refused}");
    }
    assert!(session.with_words(&["pane-server"]).is_empty());
    session.run(&["open", "-d", "--name", &"ä".repeat(100), "--", "cat"]);
}

#[test]
fn the_server_refuses_such_a_name_of_any_program() {
    let session = Session::new();
    session.open("first", "read line");
    let names = ["ä".repeat(101), "x".repeat(1_000_000), " ".to_owned()];
    for (name, workspace) in
        names.iter().flat_map(|name| [(json!(name), Value::Null), (json!("y"), json!(name))])
    {
        let open = json!({ "command": [], "name": name, "workspace": workspace, "takes_keys": true, "goes_anyway": false });
        let mut client = RawClient::connect(&session, 1, &Value::Null);
        client.send(REQUEST, &json!({ "open": open }));
        client.kinds_until(ANSWER);
        assert_eq!(session.surfaces().len(), 1, "{:?}", session.surfaces());
    }
}

#[test]
fn panes_are_listed_in_the_order_of_the_sidebar() {
    let session = Session::new();
    let names = ["one", "two", "three", "four", "five", "six"];
    for (number, name) in names.iter().enumerate() {
        let workspace = ["zoo", "api", "mid"][number / 2];
        session.run(&["open", "-d", "--name", name, "--workspace", workspace, "--", "cat"]);
    }
    let names_in = |command: &[&str]| -> Vec<String> {
        let listed: Vec<Value> =
            serde_json::from_str(&session.run(&[command, &["--json"]].concat())).unwrap();
        listed.iter().filter_map(|row| row["name"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names_in(&["panes"]), names);
    // The hub knows all of them by then.
    until("the hub knows them", || names.iter().all(|name| session.surface(name)["tty"].is_string()));
    assert_eq!(names_in(&["panes"]), names);
    assert_eq!(names_in(&["panes", "--workspaces"]), ["zoo", "api", "mid"]);
}

#[test]
fn what_scripts_open_leaves_room_where_the_person_types() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 40, 120);
    window.until("$ ");
    for number in 0..12 {
        session.run(&["open", "-d", "--name", &format!("job{number}"), "--", "cat"]);
    }
    window.command("stty size");
    // Half of the columns beside the sidebar, without the border.
    window.until("36 50");
    window.resize(10, 40);
    window.until("1 of 13");
    window.command("echo seen; stty size");
    window.until("6 38");
    window.press("o");
    window.until("2 of 13");
    window.resize(40, 120);
    window.until("job11");
    window.until_not(" of 13");
}
