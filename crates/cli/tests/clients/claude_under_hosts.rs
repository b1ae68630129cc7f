//! Claude Code under `ringer run`, in a pane of tmux and in a pane of Ringer, with hooks and without.

use serde_json::json;
use test_support::{Answer, Messages, Model};

use crate::claude_answers::until_asked;
use crate::environment::ClientEnvironment;
use crate::hosts::{Host, HostedClient};
use crate::scenarios::{HostedTurns, check_answers_from_panes};

#[track_caller]
fn check(model: &Model, environment: &ClientEnvironment, host: Host) {
    let client = HostedClient::start(environment, host, &["claude", "--permission-mode", "default"]);
    let file = environment.project().join("hello.txt");
    let asks = Answer::tool("Write", json!({ "file_path": file, "content": "hi\n" }));
    HostedTurns { environment, model, client, ready: "Claude Code", asks, dialog: "Yes" }.check();
    assert!(file.exists());
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_under_run_with_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model), Host::Run);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_under_run_without_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model).without_hooks(), Host::Run);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_tmux_with_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model), Host::Tmux);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_tmux_without_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model).without_hooks(), Host::Tmux);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_a_pane_with_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model), Host::Panes);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn turns_in_a_pane_without_hooks_are_told_once_each() {
    let model = Model::new(&Messages);
    check(&model, &ClientEnvironment::for_claude(&model).without_hooks(), Host::Panes);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn permissions_in_a_pane_are_given_in_the_inbox_and_by_a_command() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let command = ["claude", "--permission-mode", "default", "go on, please"];
    let mut client = HostedClient::start(&environment, Host::Panes, &command);
    assert_eq!(model.request().count_new("go on, please"), 1);
    let files = ["first", "second"].map(|name| environment.project().join(name));
    let asks = files.clone().map(|file| Answer::tool("Write", json!({ "file_path": file, "content": "x" })));
    check_answers_from_panes(&environment, &model, &mut client, asks, || until_asked(&environment));
    assert!(files.iter().all(|file| file.exists()));
}
