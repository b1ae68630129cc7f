//! A session of Copilot CLI that is resumed.

use test_support::Model;

use crate::chat_completions::ChatCompletions;
use crate::copilot_in_terminal::BETWEEN_TURNS;
use crate::environment::ClientEnvironment;
use crate::scenarios::{SessionCommands, check_resume};

const COMMANDS: SessionCommands = SessionCommands {
    client: "copilot",
    first: &["-i", "hello"],
    between_turns: Some(BETWEEN_TURNS),
    clear: "/clear",
    cleared: "fresh session",
    calls_hooks_at_once: false,
    resume: &["--session-id"],
    fork: &[],
};

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_resumed_session_is_the_same_agent_and_reads_what_came_meanwhile() {
    let model = Model::new(&ChatCompletions);
    check_resume(&ClientEnvironment::for_copilot(&model), &model, &COMMANDS);
}
