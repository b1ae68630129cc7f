//! Codex without a terminal, `codex exec`.

use serde_json::json;
use test_support::{Answer, Model};

use crate::environment::{ClientEnvironment, SENDER};
use crate::responses::Responses;
use crate::scenarios::{BLOCK, TEXT, check_after_worker, escaped_block, notifying};

/// Runs hooks that no person has looked at.
const TRUST: &str = "--dangerously-bypass-hook-trust";

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_notification_during_a_tool_call_is_in_the_next_request_and_a_stop_is_one_complete() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let session = environment.start("codex", &["exec", "--skip-git-repo-check", TRUST, "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    let agent = environment.agent();
    model.answer(Answer::tool("exec_command", json!({ "cmd": notifying(&agent) })));
    // Its notify program says of the end what its hook has said.
    let printed = check_after_worker(&environment, &model, session, BLOCK);
    assert!(printed.contains("hook: Stop Completed"), "{printed}");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn what_comes_too_late_for_a_tool_makes_it_go_on_and_is_still_one_complete() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let session = environment.start("codex", &["exec", "--skip-git-repo-check", TRUST, "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    environment.ringer(&["notify", "--from", SENDER, "--to", &environment.agent(), TEXT]);
    model.answer(Answer::Text("all done"));
    let next = model.request();
    // Codex puts a hook's reason into a block of its own, and escapes it for that.
    assert_eq!(next.count_new(&escaped_block()), 1, "{}", next.news());
    model.answer(Answer::Text("the docs are done too"));
    assert!(session.end().0.contains("the docs are done too"));
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "it was told once");
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn before_its_hooks_are_trusted_its_notify_program_says_complete() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let session = environment.start("codex", &["exec", "--skip-git-repo-check", "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    let (printed, _) = session.end();
    assert!(!printed.contains("hook: Stop"), "{printed}");
    assert_eq!(environment.kinds(), ["complete"]);
    assert_eq!(environment.complaints(), "");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_error_of_the_server_is_an_error() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let session = environment.start("codex", &["exec", "--skip-git-repo-check", TRUST, "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    model.answer(Answer::Error { status: 400, kind: "invalid_request_error" });
    let (printed, is_content) = session.end();
    assert!(!is_content, "{printed}");
    environment.notified("error");
    assert_eq!(environment.kinds(), ["error"]);
    assert_eq!(environment.complaints(), "");
}
