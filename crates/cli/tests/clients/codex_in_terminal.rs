//! Codex in a terminal.

use serde_json::json;
use test_support::{Answer, Model};

use crate::environment::ClientEnvironment;
use crate::responses::Responses;
use crate::scenarios;
use crate::terminal::Terminal;

/// The options of a session that asks before it leaves its sandbox.
pub(crate) const ASKING: [&str; 6] = [
    "--no-daemon",
    "--dangerously-bypass-hook-trust",
    "--ask-for-approval",
    "on-request",
    "--sandbox",
    "workspace-write",
];

/// A session with nothing to do, and something for it to do.
fn check_waking(arguments: &[&str], open: impl FnOnce(&mut Terminal)) {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let mut terminal = environment.start_in_terminal("codex", arguments);
    open(&mut terminal);
    scenarios::check_waking(&environment, &model, |_| {});
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_idle_session_is_woken_through_its_queue() {
    check_waking(&["--no-daemon", "--dangerously-bypass-hook-trust", "hello"], |_| {});
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_in_its_daemon_whose_hooks_the_person_trusts_is_woken_as_well() {
    check_waking(&["hello"], trust_hooks);
}

/// The person trusts the hooks, for which Codex asks.
#[track_caller]
pub(crate) fn trust_hooks(terminal: &mut Terminal) {
    terminal.until_drawn("hooks are new or changed");
    // It draws its dialog before it reads keys.
    terminal.press_until_drawn("2", "2. Trust all and continue");
    terminal.press("\r");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_leaves_the_agent_idle_and_an_error_of_the_server_is_told() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let arguments = ["--no-daemon", "--dangerously-bypass-hook-trust", "hello"];
    let mut terminal = environment.start_in_terminal("codex", &arguments);
    assert_eq!(model.request().count_new("hello"), 1);
    environment.until_state("working");
    terminal.press("\x1b");
    environment.until_state("ready");
    assert!(environment.kinds().is_empty());

    terminal.press("again");
    terminal.until_drawn("again");
    terminal.press_until("\r", "it works", |_| environment.is_in_state("working"));
    model.request();
    model.answer(Answer::Error { status: 500, kind: "server_error" });
    environment.notified("error");
    environment.until_state("error");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_in_its_dialog_ends_the_permission() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let mut terminal = environment.start_in_terminal("codex", &[&ASKING[..], &["hello"]].concat());
    assert_eq!(model.request().count_new("hello"), 1);
    let file = environment.project().join("made");
    let command = format!("touch {}", file.display());
    let asks =
        json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" });
    model.answer(Answer::tool("exec_command", asks));
    let waiting = environment.notified("waiting");
    assert!(waiting["msg"].as_str().is_some_and(|text| text.contains("touch")), "{waiting}");
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
    assert_eq!(environment.until_open(0).as_deref(), Some("you interrupted the agent"));
    assert!(!file.exists() && environment.kinds() == ["waiting"]);
    assert_eq!(environment.complaints(), "");
}
