//! Codex under `ringer run`, in a pane of tmux and in a pane of Ringer, with hooks and without.

use serde_json::json;
use test_support::{Answer, Model};

use crate::codex_answers::{self, making, until_asked};
use crate::codex_in_terminal::ASKING;
use crate::environment::ClientEnvironment;
use crate::hosts::{Host, HostedClient};
use crate::responses::Responses;
use crate::scenarios::{HostedTurns, check_answers_from_panes};
use crate::terminal::Terminal;

#[track_caller]
fn check(model: &Model, environment: &ClientEnvironment, host: Host) {
    let client = HostedClient::start(environment, host, &[&["codex"], &ASKING[..]].concat());
    let file = environment.project().join("made");
    let command = format!("touch {}", file.display());
    let input =
        json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?" });
    let asks = Answer::tool("exec_command", input);
    HostedTurns { environment, model, client, ready: "OpenAI Codex", asks, dialog: "to cancel" }.check();
    assert!(file.exists());
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_under_run_with_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model), Host::Run);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_under_run_without_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model).without_hooks(), Host::Run);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_tmux_with_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model), Host::Tmux);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_tmux_without_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model).without_hooks(), Host::Tmux);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_a_pane_with_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model), Host::Panes);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_a_pane_without_hooks_are_told_once_each() {
    let model = Model::new(&Responses);
    check(&model, &ClientEnvironment::for_codex(&model).without_hooks(), Host::Panes);
}

/// Codex draws its dialog before it reads keys. A pane draws a line once more when it is chosen.
fn trust_hooks_in_pane(terminal: &mut Terminal) {
    const TRUST: &str = "Trust all and continue";
    terminal.until_drawn(TRUST);
    terminal.forget_drawn();
    terminal.press_until_drawn("2", TRUST);
    terminal.press("\r");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn permissions_in_a_pane_are_given_in_the_inbox_and_by_a_command() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let command = [&["codex"], &codex_answers::ASKING[..]].concat();
    let mut client = HostedClient::start(&environment, Host::Panes, &command);
    client.go_there();
    trust_hooks_in_pane(client.terminal());
    assert_eq!(model.request().count_new("hello"), 1);
    client.go_away();
    let files = ["first", "second"].map(|name| environment.project().join(name));
    let asks = files.clone().map(|file| Answer::tool("exec_command", making(&file)));
    check_answers_from_panes(&environment, &model, &mut client, asks, || until_asked(&environment));
    assert!(files.iter().all(|file| file.exists()));
}
