//! What an agent does, on its row: in a real tmux, with real hooks.

use serde_json::{Value, json};

use super::environment::HubEnvironment;
use super::inbox::Screen;
use super::person_text::hook;
use super::tmux::Tmux;

fn doing(environment: &HubEnvironment) -> Value {
    environment.json(&["status", "--json"])["agents"][0]["doing"].clone()
}

#[test]
fn a_row_follows_the_tools_of_its_agent() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let tmux = Tmux::start(&environment, "");
    let screen = Screen::with_working_agent(&environment, &tmux);
    assert_eq!(doing(&environment), Value::Null);

    let repository = environment.base.repository();
    let edit = json!({
        "tool_use_id": "t1", "tool_name": "Edit",
        "tool_input": { "file_path": repository.join("src/login.tsx"), "new_string": "\u{1b}[31mx" },
    });
    hook(&environment, "PreToolUse", &edit);
    screen.until("Edit: src/login.tsx");
    assert_eq!(doing(&environment), "Edit: src/login.tsx");
    hook(&environment, "PostToolUse", &edit);
    screen.until_not("Edit: src/login.tsx");

    let run = json!({
        "tool_use_id": "t2", "tool_name": "Bash", "tool_input": { "command": "echo \u{1b}]0;x\u{7}a\u{202e}b && make" },
    });
    hook(&environment, "PreToolUse", &run);
    screen.until("Bash: echo ]0;x ab && make");
    let status = environment.run(&["status"]);
    assert!(status.contains("(working, Bash: echo ]0;x ab && make)"), "{status}");
    hook(&environment, "Stop", &json!({ "last_assistant_message": "All 214 tests pass." }));
    screen.until("All 214 tests pass.");
    screen.until_not("Bash: echo");
    assert_eq!(doing(&environment), Value::Null);
}

#[test]
fn an_agent_that_is_done_says_what_runs_on() {
    let environment = HubEnvironment::new();
    hook(&environment, "SessionStart", &json!({}));
    hook(&environment, "UserPromptSubmit", &json!({}));
    let subagent = json!({ "type": "subagent", "status": "running" });
    hook(
        &environment,
        "Stop",
        &json!({ "background_tasks": [subagent], "last_assistant_message": "started" }),
    );
    assert_eq!(doing(&environment), "1 background task runs on");
    let agent = &environment.json(&["status", "--json"])["agents"][0];
    assert_eq!((&agent["state"], &agent["running_tasks"]), (&json!("done"), &json!(1)));
    hook(&environment, "UserPromptSubmit", &json!({}));
    hook(&environment, "Stop", &json!({ "background_tasks": [], "last_assistant_message": "ready" }));
    assert_eq!(environment.json(&["status", "--json"])["agents"][0]["running_tasks"], 0);
}
