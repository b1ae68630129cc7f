//! Copilot CLI without a terminal, `copilot -p`.

use serde_json::json;
use test_support::{Answer, Model};

use crate::chat_completions::ChatCompletions;
use crate::environment::{ClientEnvironment, SENDER};
use crate::scenarios::{BLOCK, TEXT, check_after_tool, notifying};
use crate::session::Session;

/// A session that has asked the model for its first step, and the agent in it.
fn begin(environment: &ClientEnvironment, model: &Model) -> (Session, String) {
    let session = environment.start("copilot", &["-p", "rename the parser", "--allow-all-tools"]);
    let first = model.request();
    assert_eq!(first.count_new("rename the parser"), 1, "{}", first.news());
    assert_eq!(first.count_new("You are told in `<notification source"), 1, "{}", first.news());
    (session, environment.agent())
}

/// The last message of the turn is in the session's log only.
#[track_caller]
fn check_complete(environment: &ClientEnvironment, message: &str) {
    let complete = environment.notified("complete");
    assert!(complete["msg"].as_str().is_some_and(|text| text.ends_with(message)), "{complete}");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_notification_during_a_tool_call_is_in_the_next_request_and_the_end_is_one_complete() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, agent) = begin(&environment, &model);
    let command = notifying(&agent);
    model.answer(Answer::tool("bash", json!({ "command": command, "description": "Notify" })));
    check_after_tool(&environment, &model, session, BLOCK);
    check_complete(&environment, "all done");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_tool_that_fails_brings_it_as_well() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    let path = environment.project().join("it ran");
    model.answer(Answer::tool("edit", json!({ "path": path, "old_str": "a", "new_str": "b" })));
    let next = model.request();
    assert_eq!((next.count_new(BLOCK), next.count_new("ENOENT")), (1, 1), "{}", next.news());
    model.answer(Answer::Text("all done"));
    assert!(session.end().1);
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_a_tool_makes_it_go_on_and_is_still_one_complete() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::Text("all done"));
    let next = model.request();
    assert_eq!(next.count_new(BLOCK), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    let (printed, _) = session.end();
    assert!(printed.contains("the docs are done too"), "{printed}");
    check_complete(&environment, "the docs are done too");
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it was told once");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_one_error() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, _) = begin(&environment, &model);
    model.answer(Answer::Error { status: 400, kind: "invalid_request_error" });
    let (printed, is_content) = session.end();
    assert!(!is_content, "{printed}");
    environment.notified("error");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}

/// It asks nobody, but calls its hook as if it did.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_that_nobody_can_give_is_told_as_a_status() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, _) = begin(&environment, &model);
    model.answer(Answer::tool("view", json!({ "path": "/nowhere" })));
    let next = model.request();
    assert_eq!(next.count_new("Permission denied"), 1, "{}", next.news());
    model.answer(Answer::Text("all done"));
    assert!(session.end().1);
    environment.notified("complete");
    assert_eq!(environment.kinds(), ["status", "complete"]);
    assert_eq!(environment.complaints(), "");
}

/// Its hooks name a session of its own.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_subagent_is_no_agent_and_takes_no_message() {
    let model = Model::new(&ChatCompletions);
    let environment = ClientEnvironment::for_copilot(&model);
    let (session, agent) = begin(&environment, &model);
    let task = json!({ "agent_type": "explore", "description": "look", "name": "look", "prompt": "look around",
        "mode": "sync" });
    model.answer(Answer::tool("task", task));
    assert_eq!(model.request().count_new("look around"), 1);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::tool("bash", json!({ "command": "echo subagent", "description": "Say" })));
    let next = model.request();
    assert_eq!((next.count_new("subagent"), next.count_new(TEXT)), (1, 0), "{}", next.news());
    model.answer(Answer::Text("it ran"));
    assert_eq!(environment.of_agents("session_id").len(), 1);
    check_after_tool(&environment, &model, session, BLOCK);
}
