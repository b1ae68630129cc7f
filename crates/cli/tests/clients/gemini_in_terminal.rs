//! Gemini CLI in a terminal: what no hook of it tells.

use serde_json::json;
use test_support::{Answer, Model, until_within};

use crate::environment::{ClientEnvironment, DEADLINE};
use crate::generate_content::GenerateContent;

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn escape_while_the_model_works_leaves_the_agent_idle() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let mut terminal = environment.start_in_terminal("gemini", &["-i", "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    environment.until_state("working");
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
    assert!(environment.kinds().is_empty(), "{:?}", environment.kinds());
    environment.until_state("ready");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_one_error_that_says_which() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let _terminal = environment.start_in_terminal("gemini", &["-i", "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    model.answer(Answer::Error { status: 400, kind: "INVALID_ARGUMENT" });
    let error = environment.notified("error");
    assert!(
        error["msg"].as_str().is_some_and(|text| text.contains("the stand-in was told to fail")),
        "{error}"
    );
    assert_eq!(environment.kinds(), ["error"]);
    environment.until_state("error");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_ends_when_it_is_refused_and_escape_ends_a_tool() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let mut terminal = environment.start_in_terminal("gemini", &["-i", "do it"]);
    model.request();
    let started = environment.project().join("started");
    let command = format!("touch '{}'; sleep 300", started.display());
    let tool = || Answer::tool("run_shell_command", json!({ "command": command, "description": "wait" }));
    model.answer(tool());
    environment.notified("waiting");
    terminal.until_drawn("Allow once");
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
    assert_eq!(environment.until_open(0).as_deref(), Some("you interrupted the agent"));

    terminal.press_until_drawn("again", "again");
    terminal.press_until("\r", "the prompt is sent", |_| environment.is_in_state("working"));
    model.request();
    model.answer(tool());
    environment.until_open(1);
    terminal.press_until("\r", "the tool runs", |_| started.exists());
    terminal.press_until("\x1b", "the agent is idle", |_| environment.is_in_state("ready"));
    until_within(DEADLINE, "nothing is open", || environment.until_open(0).is_some());
    assert_eq!(environment.kinds(), ["waiting", "waiting"]);
    assert_eq!(environment.complaints(), "");
}
