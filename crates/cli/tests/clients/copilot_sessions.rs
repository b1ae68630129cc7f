//! Copilot CLI's sessions: one that is cleared or resumed.

use test_support::Model;

use crate::chat_completions::ChatCompletions;
use crate::environment::ClientEnvironment;
use crate::scenarios::{SessionCommands, check_clear, check_resume};

const COMMANDS: SessionCommands = SessionCommands {
    client: "copilot",
    first: &["-i", "hello"],
    clear: "/clear",
    cleared: "fresh session",
    calls_hooks_at_once: false,
    resume: &["--session-id"],
    fork: &[],
};

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_cleared_session_ends_and_another_begins_in_its_place() {
    let model = Model::new(&ChatCompletions);
    check_clear(&ClientEnvironment::for_copilot(&model), &model, &COMMANDS);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_resumed_session_is_the_same_agent_and_reads_what_came_meanwhile() {
    let model = Model::new(&ChatCompletions);
    check_resume(&ClientEnvironment::for_copilot(&model), &model, &COMMANDS);
}
