//! Claude Code's sessions: one that is cleared, resumed or forked.

use test_support::{Messages, Model};

use crate::environment::ClientEnvironment;
use crate::scenarios::{SessionCommands, check_clear, check_fork, check_resume};

const COMMANDS: SessionCommands = SessionCommands {
    client: "claude",
    first: &["hello"],
    between_turns: None,
    clear: "/clear",
    cleared: "SessionEnd",
    calls_hooks_at_once: true,
    resume: &["--resume"],
    fork: &["--fork-session", "--resume"],
};

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_cleared_session_ends_and_another_begins_in_its_place() {
    let model = Model::new(&Messages);
    check_clear(&ClientEnvironment::for_claude(&model), &model, &COMMANDS);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_resumed_session_is_the_same_agent_and_reads_what_came_meanwhile() {
    let model = Model::new(&Messages);
    check_resume(&ClientEnvironment::for_claude(&model), &model, &COMMANDS);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_forked_session_is_another_agent() {
    let model = Model::new(&Messages);
    check_fork(&ClientEnvironment::for_claude(&model), &model, &COMMANDS);
}
