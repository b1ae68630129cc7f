//! Gemini CLI without a terminal, `gemini -p`.

use serde_json::json;
use test_support::{Answer, Model};

use crate::environment::{ClientEnvironment, SENDER};
use crate::generate_content::GenerateContent;
use crate::scenarios::{BLOCK, TEXT, check_after_worker, escaped_block, notifying};
use crate::session::Session;

/// A session that has asked the model for its first step, and the agent in it.
fn begin(environment: &ClientEnvironment, model: &Model) -> (Session, String) {
    let session = environment.start("gemini", &["-p", "do it", "--approval-mode", "yolo"]);
    let first = model.request();
    assert_eq!(first.count_new("do it"), 1, "{}", first.news());
    (session, environment.agent())
}

/// The model calls a shell, which notifies the agent and then ends like that.
fn check_tool(then: &str) {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let (session, agent) = begin(&environment, &model);
    let command = format!("{}; {then}", notifying(&agent));
    model.answer(Answer::tool("run_shell_command", json!({ "command": command })));
    // Gemini CLI escapes what a hook adds to a tool's result.
    check_after_worker(&environment, &model, session, &escaped_block());
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_notification_during_a_tool_call_is_in_the_next_request_and_the_end_is_one_complete() {
    check_tool("true");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_tool_that_fails_brings_it_as_well() {
    check_tool("exit 3");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_tool_that_cannot_run_leaves_it_for_later() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    // Of such a tool the model gets the error alone, without what a hook has added.
    model.answer(Answer::tool("read_file", json!({ "file_path": "not-there" })));
    let next = model.request();
    assert_eq!((next.count_new("not found"), next.count_new(TEXT)), (1, 0), "{}", next.news());
    model.answer(Answer::Text("all done"));
    let next = model.request();
    assert_eq!(next.count_new(BLOCK), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    assert!(session.end().1);
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_a_tool_makes_it_go_on_and_is_still_one_complete() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::Text("all done"));
    let next = model.request();
    assert_eq!(next.count_new(BLOCK), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    let (printed, _) = session.end();
    assert!(printed.contains("the docs are done too"), "{printed}");
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it was told once");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_an_error() {
    let model = Model::new(&GenerateContent);
    let environment = ClientEnvironment::for_gemini(&model);
    let (session, _) = begin(&environment, &model);
    model.answer(Answer::Error { status: 400, kind: "INVALID_ARGUMENT" });
    let (printed, is_content) = session.end();
    assert!(!is_content, "{printed}");
    environment.notified("error");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}
