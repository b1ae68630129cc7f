//! Codex' sessions: one that is left for a new one, resumed or forked.

use test_support::{Answer, Model, until_within};

use crate::codex_in_terminal::trust_hooks;
use crate::environment::{ClientEnvironment, DEADLINE};
use crate::responses::Responses;
use crate::scenarios::{SessionCommands, check_clear, check_fork, check_resume};

const COMMANDS: SessionCommands = SessionCommands {
    client: "codex",
    first: &["--no-daemon", "--dangerously-bypass-hook-trust", "hello"],
    between_turns: None,
    clear: "/new",
    cleared: "OpenAI",
    calls_hooks_at_once: false,
    resume: &["resume", "--no-daemon", "--dangerously-bypass-hook-trust"],
    fork: &["fork", "--no-daemon", "--dangerously-bypass-hook-trust"],
};

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_that_is_left_ends_and_another_begins_in_its_place() {
    let model = Model::new(&Responses);
    check_clear(&ClientEnvironment::for_codex(&model), &model, &COMMANDS);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_resumed_session_is_the_same_agent_and_reads_what_came_meanwhile() {
    let model = Model::new(&Responses);
    check_resume(&ClientEnvironment::for_codex(&model), &model, &COMMANDS);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_forked_session_is_another_agent() {
    let model = Model::new(&Responses);
    check_fork(&ClientEnvironment::for_codex(&model), &model, &COMMANDS);
}

/// Both run in the process of its daemon.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn two_sessions_of_one_daemon_are_two_agents() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let mut first = environment.start_in_terminal("codex", &["hello"]);
    trust_hooks(&mut first);
    model.request();
    model.answer(Answer::Text("good morning"));
    environment.notified("complete");
    let _second = environment.start_in_terminal("codex", &["hello again"]);
    model.request();
    model.answer(Answer::Text("good evening"));
    environment.notified("complete");
    until_within(DEADLINE, "both are done", || environment.states() == ["done", "done"]);
    assert_eq!(environment.complaints(), "");
}
