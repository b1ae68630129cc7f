//! Dialogs of a client beside which a hook waits.

use std::fs::{self, File};

use ringer_journal::{Home, Journal};
use serde_json::{Value, json};
use test_support::until;

use super::environment::HubEnvironment;
use crate::background::Background;

/// Asks for a permission as a client does that waits for its hook.
pub(super) fn ask(environment: &HubEnvironment, tool: &str, tool_input: &Value) -> Background {
    let input = json!({
        "hook_event_name": "PermissionRequest", "session_id": "0123456789",
        "cwd": environment.base.repository(), "tool_name": tool, "tool_input": tool_input,
    });
    let path = environment.base.path().join("input.json");
    fs::write(&path, input.to_string()).expect("a file");
    let mut command = environment.ringer(&["hook", "claude", "PermissionRequest"]);
    command.stdin(File::open(path).expect("a file"));
    Background::start(command)
}

/// Waits until this many hooks wait beside their dialogs: an answer that comes before that is not taken.
#[track_caller]
pub(crate) fn until_hooks_wait(environment: &HubEnvironment, count: usize) {
    let home = Home::new(environment.base.home());
    let mut journal = Journal::open(&home).expect("a journal");
    until("the hooks wait", || {
        let open = journal.open_prompts().expect("prompts");
        let waited_for = open.iter().filter(|prompt| journal.is_waited_for(&prompt.key).expect("bells"));
        waited_for.count() == count
    });
}

/// What a hook decides.
#[track_caller]
pub(crate) fn decision(hook: Background) -> Value {
    let (lines, exit) = hook.end();
    assert_eq!(exit, Some(0));
    crate::ringer::json(&lines.join("\n"))["hookSpecificOutput"]["decision"].clone()
}
