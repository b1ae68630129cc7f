//! opencode without a terminal, `opencode run`.

use serde_json::json;
use test_support::{Answer, Model};

use crate::chat_completions::ChatCompletions;
use crate::environment::{ClientEnvironment, SENDER};
use crate::scenarios::{BLOCK, TEXT, check_after_tool, check_after_worker, notifying};
use crate::session::Session;

/// A session that has asked the model for its first step, and the agent in it.
fn begin(environment: &ClientEnvironment, model: &Model) -> (Session, String) {
    let session = environment.start("opencode", &["run", "do it"]);
    let first = model.request();
    assert_eq!(first.count_new("do it"), 1, "{}", first.news());
    (session, environment.agent())
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_notification_during_a_tool_call_is_in_the_next_request_and_the_end_is_one_complete() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (session, agent) = begin(&environment, &model);
    let command = notifying(&agent);
    model.answer(Answer::tool("bash", json!({ "command": command, "description": "Notify" })));
    check_after_worker(&environment, &model, session, BLOCK);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_tool_of_an_mcp_server_brings_it_as_well() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    environment.add_mcp_server("stand-in", include_str!("mcp_server.mjs"));
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::tool("stand-in_run", json!({})));
    check_after_tool(&environment, &model, session, BLOCK);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_an_error() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (session, _) = begin(&environment, &model);
    model.answer(Answer::Error { status: 400, kind: "invalid_request_error" });
    let (printed, _) = session.end();
    let error = environment.notified("error");
    assert!(error["msg"].as_str().is_some_and(|text| text.contains("told to fail")), "{error}: {printed}");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_it_waits_until_it_is_continued() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_opencode(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::Text("all done"));
    assert!(session.end().1);
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it has ended");
    let session = environment.start("opencode", &["run", "--continue", "go on"]);
    assert_eq!(model.request().count_new("go on"), 1);
    model.answer(Answer::tool("bash", json!({ "command": "echo it ran", "description": "Run" })));
    let next = model.request();
    assert_eq!(next.count_new(BLOCK), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    assert!(session.end().1);
    assert_eq!(environment.kinds(), ["complete"; 2]);
    assert_eq!(environment.complaints(), "");
}
