//! What a person reads about an agent, and what its lead reads.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::agent_shell::AgentShell;
use super::environment::HubEnvironment;
use crate::ringer::check_with_input;

pub(super) fn hook(environment: &HubEnvironment, name: &str, more: &Value) {
    call(environment.ringer(&["hook", "claude", name]), environment, name, more);
}

/// A hook of an agent in a pane.
pub(super) fn hook_on(environment: &HubEnvironment, pane: &str, name: &str, more: &Value) {
    let mut command = environment.ringer(&["hook", "claude", name]);
    command.env("RINGER_SURFACE", pane);
    call(command, environment, name, more);
}

fn call(mut command: Command, environment: &HubEnvironment, name: &str, more: &Value) {
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

/// The lines of an overview. The last column of a row is its age, which changes.
fn without_ages(words: &str) -> Vec<String> {
    let row = |line: &str| line.rsplit_once(' ').map(|(row, _)| row.trim_end().to_owned());
    let line = |line: &str| row(line).filter(|_| line.starts_with(' ')).unwrap_or_else(|| line.to_owned());
    words.lines().map(line).collect()
}

#[test]
fn what_needs_a_person_comes_first_and_the_rest_is_counted() {
    let environment = HubEnvironment::new();
    assert_eq!(environment.run::<&str>(&[]), "Nothing needs you.\nNo agents are running.\n");
    let mut agent = AgentShell::start(&environment);
    agent.hook("SessionStart", &json!({}));
    agent.hook("UserPromptSubmit", &json!({}));
    environment.notify(&["--from", "ci", "--kind", "complete", "green"]);
    environment.notify(&["--from", "ci", "--kind", "error", "main is red"]);
    environment.run(&["ask", "--from", "painter", "Which colour?"]);
    environment.settled_hub();
    let ids: Vec<String> = environment
        .list(&["--limit", "2"])
        .iter()
        .rev()
        .map(|row| row["short_id"].as_str().expect("one").to_owned())
        .collect();
    let overview = [
        "2 need you".to_owned(),
        format!(" {}  ci       error     main is red", ids[0]),
        format!(" {}  painter  question  Which colour?", ids[1]),
        "1 working".to_owned(),
    ];
    assert_eq!(without_ages(&environment.run::<&str>(&[])), overview, "in a pipe");
    assert!(without_ages(&environment.run(&["status"])).starts_with(&overview));
    let needs: Vec<Value> =
        environment.json(&["status", "--json"])["needs_you"].as_array().expect("rows").clone();
    assert_eq!(needs.len(), 2);

    let elsewhere = environment.base.make_repository("elsewhere");
    let mut here = environment.ringer(&["status", "--here"]);
    let words = crate::ringer::check(here.current_dir(elsewhere), 0).0;
    assert!(words.starts_with("Nothing needs you.\n"), "{words}");
    environment.run(&["read", &ids[0]]);
    environment.settled_hub();
    assert!(environment.run::<&str>(&[]).starts_with("1 needs you\n"));
}

#[test]
fn a_table_is_as_wide_as_it_is_told() {
    let environment = HubEnvironment::new();
    environment.notify(&["--title", "t", &"word ".repeat(60)]);
    for columns in ["60", "80", "120"] {
        let mut command = environment.ringer(&["list"]);
        let words = crate::ringer::check(command.env("COLUMNS", columns), 0).0;
        let width = words.trim_end().chars().count();
        assert!(width <= columns.parse::<usize>().expect("a number") && width > 50, "{words}");
        assert!(!words.contains('\x1b'), "no colours in a pipe");
    }
}
