//! What a person reads about an agent, and what its lead reads.

use std::fs;

use serde_json::{Value, json};

use super::environment::HubEnvironment;
use crate::ringer::check_with_input;

fn hook(environment: &HubEnvironment, name: &str, more: &Value) {
    let mut command = environment.ringer(&["hook", "claude", name]);
    let mut input = json!({
        "hook_event_name": name, "session_id": "0123456789", "cwd": environment.base.repository(),
        "prompt": "go on", "source": "startup",
    });
    for (key, value) in more.as_object().expect("an object") {
        input[key] = value.clone();
    }
    check_with_input(&mut command, input.to_string().as_bytes());
}

#[test]
fn a_person_reads_where_and_what_and_the_lead_reads_who() {
    let environment = HubEnvironment::new();
    let repository = environment.base.repository();
    fs::write(repository.join(".git/HEAD"), "ref: refs/heads/auth\n").expect("a file");
    let name = repository.file_name().and_then(|name| name.to_str()).expect("a name");
    hook(&environment, "SessionStart", &json!({}));
    hook(&environment, "UserPromptSubmit", &json!({}));
    hook(
        &environment,
        "PermissionRequest",
        &json!({
            "tool_name": "Bash", "tool_input": { "command": "rm -rf build" },
        }),
    );
    let row = environment.list(&["--limit", "1"]).remove(0);
    assert_eq!(row["title"], format!("{name}/auth · needs permission"), "{row}");
    assert_eq!((&row["body"], &row["kind"]), (&"Bash: rm -rf build".into(), &"permission".into()));
    assert_eq!(row["label"], format!("{name}/auth"));
    let words = environment.run(&["list"]);
    assert!(!words.contains("Agent claude-") && !words.contains("Manager"), "{words}");
    let why = environment.run(&["why"]);
    assert!(why.contains(&format!("{name}/auth · needs permission: Bash: rm -rf build")), "{why}");

    hook(&environment, "Stop", &json!({ "last_assistant_message": "All 214 tests pass." }));
    let row = environment.list(&["--limit", "1"]).remove(0);
    assert_eq!(row["title"], format!("{name}/auth · done"), "{row}");
    assert_eq!(row["body"], "All 214 tests pass.");
    let log = environment.run(&["log"]);
    assert!(log.contains("completed its goal: All 214 tests pass."), "{log}");
}

#[test]
fn a_given_name_comes_first() {
    let environment = HubEnvironment::new();
    let mut command = environment.ringer(&["ask", "Which database?", "--option", "Postgres"]);
    command.env("RINGER_AGENT", "painter");
    crate::ringer::check(&mut command, 0);
    let row = environment.list(&["--limit", "1"]).remove(0);
    assert!(
        row["title"]
            .as_str()
            .is_some_and(|title| title.starts_with("painter · ") && title.ends_with(" · asks")),
        "{row}"
    );
    assert_eq!((&row["body"], &row["label"]), (&"Which database? (Postgres)".into(), &"painter".into()));
}
