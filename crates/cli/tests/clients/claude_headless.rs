//! Claude Code without a terminal, `claude -p`.

use serde_json::json;
use test_support::{Answer, Messages, Model};

use crate::environment::{ClientEnvironment, SENDER};
use crate::scenarios::{BLOCK, TEXT, check_after_worker, notifying};
use crate::session::Session;

/// A session that has asked the model for its first step, and the agent in it.
fn begin(environment: &ClientEnvironment, model: &Model) -> (Session, String) {
    let session = environment.start("claude", &["-p", "do it", "--allowedTools", "Bash"]);
    assert_eq!(model.request().count_new("do it"), 1);
    (session, environment.agent())
}

/// The model calls a shell, which notifies the agent and then ends like that.
fn check_tool(then: &str) {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let (session, agent) = begin(&environment, &model);
    let command = format!("{}; {then}", notifying(&agent));
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "Notify" })));
    check_after_worker(&environment, &model, session, BLOCK);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_notification_during_a_tool_call_is_in_the_next_request_and_a_stop_is_one_complete() {
    check_tool("true");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_tool_that_fails_brings_it_as_well() {
    check_tool("exit 3");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_a_tool_makes_it_go_on_and_is_still_one_complete() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let (session, agent) = begin(&environment, &model);
    environment.ringer(&["notify", "--from", SENDER, "--to", &agent, TEXT]);
    model.answer(Answer::Text("all done"));
    let next = model.request();
    // Claude Code also tells the model, in a second message, which hook it was.
    assert_eq!(next.count_new(&format!("Stop hook feedback:\n{BLOCK}")), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    assert!(session.end().0.contains("the docs are done too"));
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it was told once");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_permission_that_no_person_can_give_is_told_as_refused() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let session = environment.start("claude", &["-p", "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    let file = environment.project().join("hello.txt");
    model.answer(Answer::tool("Write", json!({ "file_path": file, "content": "hi\n" })));
    model.request();
    let refused = environment.notified("status");
    let text = refused["msg"].as_str().unwrap_or_default();
    assert!(text.contains("was refused permission: Write: hello.txt"), "{refused}");
    model.answer(Answer::Text("I may not"));
    assert!(session.end().0.contains("I may not"));
    assert_eq!(environment.kinds(), ["status", "complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_an_error() {
    for (status, kind) in [(400, "invalid_request_error"), (529, "overloaded_error")] {
        let model = Model::new(&Messages);
        let environment = ClientEnvironment::for_claude(&model);
        let (session, _) = begin(&environment, &model);
        model.answer(Answer::Error { status, kind });
        // Without a terminal it does not wait for its hook StopFailure. Where it kills that, the end of the session in
        // the middle of a turn is what is told: in one notification either way.
        environment.notified("error");
        let (printed, is_content) = session.end();
        assert!(!is_content, "{printed}");
        assert_eq!(environment.kinds(), ["error"], "{status}");
        assert_eq!(environment.complaints(), "");
    }
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_answer_to_its_question_is_in_the_next_request_and_the_person_was_asked_once() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let (session, agent) = begin(&environment, &model);
    let command = "\"$RINGER\" ask --wait --timeout 60 'Which port?'";
    model.answer(Answer::tool("Bash", json!({ "command": command, "description": "Ask" })));
    let question = environment.notified("question");
    assert_eq!(question["msg"], format!("Agent {agent} asks: Which port?"));
    let id = question["question_id"].as_str().expect("an id");
    environment.ringer(&["acknowledge", id, "8080"]);
    let next = model.request();
    assert_eq!(next.count_new("8080"), 1, "{}", next.news());
    model.answer(Answer::Text("it is 8080"));
    let (printed, is_content) = session.end();
    assert!(is_content && printed.contains("it is 8080"), "{printed}");
    // The answer is in the log as well.
    let kinds = environment.kinds();
    let count = |kind: &str| kinds.iter().filter(|own| *own == kind).count();
    assert_eq!((count("question"), count("complete")), (1, 1), "{kinds:?}");
    assert!(!model.has_request(), "it did not have to go on for the answer");
    assert!(!environment.ringer(&["questions", "--json"]).contains(id), "it is closed");
    assert_eq!(environment.complaints(), "");
}
