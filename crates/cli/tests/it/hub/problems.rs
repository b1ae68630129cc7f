//! What is wrong with Ringer itself, as people are told of it, and what their settings turn off.

use std::fs;

use serde_json::{Value, json};
use test_support::until;

use super::environment::{HubEnvironment, Socket};
use super::looking::attach;

const QUIET: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";

fn set(environment: &HubEnvironment, settings: &str) {
    fs::write(environment.base.path().join("config.toml"), settings).expect("a file");
}

/// Sends a message, with which the hub looks at its settings, until `status` has a line with these words.
#[track_caller]
fn until_status(environment: &HubEnvironment, words: &str) {
    until(words, || {
        environment.notify(&["look again"]);
        environment.run(&["status"]).contains(words)
    });
}

/// The same until the hub has no problem, and `status` none. A hub that is late has none in `status`, so it is asked itself.
#[track_caller]
fn until_mended(environment: &HubEnvironment) {
    until("no problem", || {
        environment.notify(&["look again"]);
        problems(environment) == json!([]) && !environment.run(&["status"]).contains("problem")
    });
}

/// The problems, according to the hub.
#[track_caller]
fn problems(environment: &HubEnvironment) -> Value {
    environment.json(&["hub", "status", "--json"])["problems"].clone()
}

#[test]
fn a_broken_file_is_a_problem_until_it_is_mended() {
    let environment = HubEnvironment::new();
    environment.notify(&["hello"]);
    environment.settled_hub();
    assert_eq!(problems(&environment), json!([]));
    assert!(!environment.run(&["status"]).contains("problem"));
    set(&environment, "[notify]\npopup = 7\n");
    until_status(&environment, "config.toml:2:9: notify.popup is a number");
    // Each command shows none where the hub is late.
    until("the problem and what to type", || {
        let words = environment.run::<&str>(&[]);
        words.contains("\nproblem: ") && words.contains("\n   hint: ringer config check\n")
    });
    let mut shown = Value::Null;
    until("the problem as JSON", || {
        shown = environment.json(&["status", "--json"])["problems"].clone();
        !shown.is_null()
    });
    assert_eq!((&shown[0]["key"], shown.as_array().map(Vec::len)), (&json!("settings"), Some(1)));
    assert!(environment.log().contains("problem: ") && !environment.log().contains("no longer a problem"));
    set(&environment, QUIET);
    until_mended(&environment);
    until("it is told", || environment.log().contains("no longer a problem: "));
}

/// Reads what a host is told, until its toast is this one.
#[track_caller]
fn until_toast(host: &mut Socket, is_right: impl Fn(&Value) -> bool) {
    loop {
        let order = host.line().expect("an order");
        if order["event"] == "toast" && is_right(&order["data"]["text"]) {
            return;
        }
    }
}

#[test]
fn hosts_show_what_is_wrong_until_it_is_gone() {
    let environment = HubEnvironment::new();
    environment.notify(&["hello"]);
    environment.settled_hub();
    let mut host = attach(&environment, &[]);
    let is_problem = |text: &Value| text.as_str().is_some_and(|text| text.ends_with("(ringer config check)"));
    set(&environment, "[notify]\npopup = 7\n");
    until_status(&environment, "notify.popup is a number");
    until_toast(&mut host, is_problem);
    // Another toast is shown in its place, and it comes back.
    environment.run(&[
        "toast",
        "--key",
        "build",
        "--priority",
        "immediate",
        "--timeout",
        "1h",
        "the build is red",
    ]);
    until_toast(&mut host, |text| text == "the build is red");
    environment.run(&["toast", "--remove", "build"]);
    until_toast(&mut host, is_problem);
    // A host that comes later is told, too.
    until_toast(&mut attach(&environment, &[]), is_problem);
    set(&environment, QUIET);
    until_mended(&environment);
    until_toast(&mut host, Value::is_null);
}

#[test]
fn a_hook_that_fails_is_a_problem_until_it_works() {
    let hook = |program: &str| format!("{QUIET}[[hook]]\nid = \"triage\"\ncommand = [\"{program}\"]\n");
    let environment = HubEnvironment::with_settings(&hook("false"));
    let failing = "problem: notification hook triage fails: ";
    until_status(&environment, failing);
    until("doctor says so", || {
        let doctor = environment.ringer(&["doctor"]).output().expect("it runs");
        String::from_utf8_lossy(&doctor.stdout).contains("notification hook triage fails")
    });
    set(&environment, &hook("true"));
    until_mended(&environment);
    set(&environment, &hook("false"));
    until_status(&environment, failing);
    // One that is no longer in the file cannot fail.
    set(&environment, QUIET);
    until_mended(&environment);
}

#[test]
fn programs_of_a_repository_are_a_problem_until_they_are_trusted() {
    let environment = HubEnvironment::new();
    let file = environment.base.repository().join(".ringer.toml");
    fs::write(file, "[[hook]]\nid = \"format\"\ncommand = [\"true\"]\n").expect("a file");
    let words = "problem: not trusted, so not run: 1 program in ";
    until_status(&environment, words);
    until("what to type", || environment.run::<&str>(&[]).contains("\n   hint: ringer trust\n"));
    environment.run(&["trust", "--yes"]);
    until_mended(&environment);
}

#[test]
fn disabled_notifications_are_no_failure() {
    let environment = HubEnvironment::with_settings(
        "preferred_channel = \"notifications_disabled\"\n[notify]\nflash = true\n",
    );
    let id = environment.notify(&["hello"]);
    environment.settled_hub();
    let why = environment.run(&["why", &id]);
    assert!(why.contains("no popup: disabled by your settings"), "{why}");
    assert!(why.contains("channels: none (listed as unread)") && !why.contains("failed"), "{why}");
}

#[test]
fn what_a_terminal_showed_does_not_move_its_surface() {
    let environment = HubEnvironment::new();
    let pane = "tmux:/nowhere/default:1:%7";
    let mut command = environment.ringer(&["notify", "hello"]);
    crate::ringer::check(command.env("RINGER_SURFACE", pane), 0);
    environment.settled_hub();
    let surfaces = || environment.connect().call("surface.list", &json!({}))["result"].clone();
    let before = surfaces();
    assert_eq!(before[0]["surface"], pane, "{before}");
    let heard = json!({ "surface_id": pane, "body": "the build is green" });
    environment.connect().call("surface.heard", &heard);
    until("it is listed", || environment.bodies(&[]).contains(&"the build is green".to_owned()));
    assert_eq!(surfaces(), before);
    let workspaces: Vec<Value> = environment.list(&[]).iter().map(|row| row["workspace"].clone()).collect();
    assert_eq!(workspaces, [before[0]["workspace"].clone(), before[0]["workspace"].clone()]);
}
