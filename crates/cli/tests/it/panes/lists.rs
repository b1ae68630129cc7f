//! What lists, `jump` and `doctor` say of panes, also of those that are closed.

use std::fs;

use serde_json::Value;
use test_support::{make_program, until};

use super::session::Session;
use crate::hub::environment::{kill, runs};

/// Waits until these texts are unread, the newest first.
#[track_caller]
fn until_unread(session: &Session, bodies: &[&str]) {
    until(&format!("{bodies:?} are unread"), || session.hub.bodies(&["--unread"]) == bodies);
}

/// Opens a shell in a workspace of its own, which sends an error and ends. Its pane is closed then.
fn closed_with_error(session: &Session, text: &str) {
    session.run(&["open", "-d", "--workspace", "gone", "--name", "broken"]);
    session.run(&["pane", "send", "broken", &format!("\"$RINGER\" notify --kind error '{text}'; exit")]);
    until("it is closed", || session.surfaces().iter().all(|surface| surface["name"] != "broken"));
    // What this test types without a terminal is announced.
    let rows = session.hub.json(&["list", "--json"]);
    let mut rows = rows.as_array().expect("a list").iter();
    let announced = rows.find(|row| row["body"].as_str().is_some_and(|body| body.starts_with("A script")));
    session.run(&["read", announced.expect("it is told")["id"].as_str().expect("an id")]);
}

#[test]
fn what_can_be_reached_is_gone_to_before_what_is_closed() {
    let session = Session::new();
    let mut window = session.attach();
    window.set_focus(true);
    closed_with_error(&session, "it broke");
    until_unread(&session, &["it broke"]);
    let told = "printf '\\033]777;notify;Build;it is green\\007'; exec sleep 1000";
    session.run(&["open", "-d", "--workspace", "there", "--name", "build", "--", "sh", "-c", told]);
    until_unread(&session, &["it is green", "it broke"]);
    let workspaces = session.run(&["panes", "--workspaces"]);
    let has_number = |line: &str| line.starts_with("there ") && line.contains(" 1  it is green");
    assert!(workspaces.lines().any(has_number) && !workspaces.contains("panes:"), "{workspaces}");

    let said = session.run(&["jump"]);
    assert!(said.contains("it is green") && said.contains("cannot go there: 1."), "{said}");
    window.until("build");
    until_unread(&session, &["it broke"]);
    // Nothing else is left: it says why it stays, and does not read it.
    let failed = session.hub.fails(&["jump"], 69);
    assert!(failed.contains("stays unread: its pane is closed\nhint: ringer read "), "{failed}");
    until_unread(&session, &["it broke"]);

    // Without the server of panes, it may come back.
    session.run(&["detach"]);
    assert!(window.end().1.success());
    kill(session.server());
    kill(session.keeper());
    until("the hub knows", || !session.hub.json(&["panes", "--json"]).to_string().contains("pane:"));
    let failed = session.hub.fails(&["jump"], 69);
    assert!(failed.contains("no panes are open\nhint: ringer attach"), "{failed}");
}

/// The kind and the place of the newest notification, as the list prints them.
fn listed(session: &Session) -> (Value, String) {
    let newest = session.hub.list(&["--unread"]).first().cloned().unwrap_or_default();
    (newest["kind"].clone(), session.run(&["list"]).lines().next().unwrap_or_default().to_owned())
}

#[test]
fn an_end_with_an_error_is_an_error_and_lists_have_the_name_of_its_pane() {
    let session = Session::new();
    session.run(&["open", "-d", "--workspace", "api", "--name", "tests", "--", "sh", "-c", "exit 101"]);
    until_unread(&session, &["exit status 101"]);
    let (kind, line) = listed(&session);
    assert_eq!(kind, "error");
    assert!(line.contains("tests") && line.ends_with("api · tests"), "{line}");
    let status = session.run(&[]);
    assert!(status.starts_with("1 need") && status.contains("api · tests"), "{status}");
    // Without a name it has a number.
    session.run(&["open", "-d", "--workspace", "api", "--", "sh", "-c", "exit 7"]);
    until_unread(&session, &["exit status 7", "exit status 101"]);
    let (_, line) = listed(&session);
    assert!(line.ends_with("api · pane 2"), "{line}");
}

#[test]
fn a_command_that_is_not_there_opens_no_pane_and_one_that_cannot_start_rings() {
    let session = Session::new();
    for missing in ["no-such-program", "/no/such/program", "./missing"] {
        let failed = session.hub.fails(&["open", "-d", "--", missing], 127);
        assert!(failed.contains(missing), "{failed}");
    }
    fs::write(session.file("plain"), "").expect("a file");
    let mut command = session.hub.ringer(&["open", "-d", "--", "./plain"]);
    let output = command.current_dir(session.directory()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(126), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(session.with_words(&["pane-server"]).is_empty(), "nothing was started for them");

    // It is there, but the program that runs it is not.
    let program = session.file("program");
    make_program(&program, "true");
    let script = fs::read_to_string(&program).expect("a file").replace("#!/bin/sh", "#!/no/such/shell");
    fs::write(&program, script).expect("a file");
    session.run(&["open", "-d", "--name", "job", "--", program.to_str().expect("a path")]);
    until("it is unread", || session.hub.list(&["--unread"]).len() == 1);
    let row = &session.hub.list(&["--unread"])[0];
    assert_eq!((&row["kind"], &row["title"]), (&"error".into(), &"job".into()), "{row}");
    let window = session.window(&["attach"], 24, 200);
    window.until("try again");
}

/// What the doctor says of panes, as verdict and words.
#[track_caller]
fn doctor(session: &Session) -> (String, String) {
    let mut command = session.hub.ringer(&["doctor", "--json"]);
    let output = command.envs(session.variables()).output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["part"] == "panes").expect("a row of panes");
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("what"))
}

#[test]
fn the_doctor_looks_at_server_keeper_and_what_is_saved() {
    let session = Session::new();
    let check = |verdict: &str, words: &str| {
        let (found, what) = doctor(&session);
        assert!(found == verdict && what.contains(words), "{found}: {what}");
    };
    check("ok", "none were opened yet");
    assert!(session.with_words(&["pane-server"]).is_empty(), "it only looks");
    session.run(&["open", "-d", "--", "sleep", "1000"]);
    let saved = session.hub.base.home().join("panes.json");
    until("the session is saved", || fs::read_to_string(&saved).is_ok_and(|saved| saved.contains("sleep")));
    check("ok", "1 pane; server and keeper run, version ");
    let (server, keeper) = (session.server(), session.keeper());
    kill(server);
    check("warn", "their programs run, but no server shows them");
    assert!(session.with_words(&["pane-server", "serve"]).is_empty(), "it starts none");
    kill(keeper);
    until("both have ended", || !runs(server) && !runs(keeper));
    check("ok", "1 pane saved; ringer attach brings them back");
}
