//! Codex's prompts, with a real journal: its hook stores them and never waits; an answer goes through its server.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs;
use std::time::{Duration, Instant};

use ringer_agents::answering::{AnswerResult, give_answer};
use ringer_agents::client::{Client, ClientPaths};
use ringer_agents::hook::{HookContext, call};
use ringer_core::Sender;
use ringer_core::agent::{Answer, AnswerMethod};
use ringer_core::attention::AnsweredWith;
use ringer_core::message::MessageOrigin;
use ringer_journal::{Decision, Home, IdSource, Journal, monotonic};
use serde_json::json;

const SESSION: &str = "01a1df46-81dc-7c71-b9f0-4dc0f3fa17df";

/// Calls Codex's hook for a permission. Returns its output.
fn ask(home: &Home, paths: &ClientPaths) -> String {
    let input = json!({
        "session_id": SESSION, "turn_id": "01a1df46-8a9c-7663-9d06-18988c7820cd", "cwd": "/nowhere",
        "hook_event_name": "PermissionRequest", "permission_mode": "default", "tool_name": "Bash",
        "tool_input": { "command": "touch zz-file", "description": "May I touch a file?" },
    });
    let at = HookContext {
        home: home.clone(),
        clock: &monotonic,
        origin: &MessageOrigin::default,
        process: None,
        manager: None,
        name: None,
        variable: &|_| None,
        paths: &|| paths.clone(),
        stdout: None,
        before_wait: &|_| {},
    };
    let mut printed = Vec::new();
    call(Client::Codex, "PermissionRequest", input.to_string().as_bytes(), &mut printed, &at).unwrap();
    String::from_utf8(printed).unwrap()
}

#[test]
fn its_hook_stores_what_is_asked_and_does_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new(directory.path().join("home"));
    let log = directory
        .path()
        .join(format!(".codex/sessions/2026/11/15/rollout-2026-11-15T12-55-02-{SESSION}.jsonl"));
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(log, r#"{"payload":{"type":"task_started","started_at":1794747302}}"#).unwrap();
    let start = Instant::now();
    assert_eq!(ask(&home, &ClientPaths::new(directory.path())), "");
    assert!(start.elapsed() < Duration::from_millis(400), "its dialog opens only when the hook has ended");
    let open = Journal::open(&home).unwrap().open_prompts().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].prompt.method, AnswerMethod::ClientServer);
    assert_eq!(open[0].prompt.content.full_text(), "Bash: touch zz-file\nWhy: May I touch a file?");
}

#[test]
fn an_answer_that_cannot_be_given_is_no_decision() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new(directory.path().join("home"));
    let paths = ClientPaths::new(directory.path());
    ask(&home, &paths);
    let mut journal = Journal::open(&home).unwrap();
    let prompt = journal.open_prompts().unwrap().remove(0);
    let before = journal.messages_after(0, usize::MAX).unwrap().len();
    let by = Sender::new("person").unwrap();
    let at_ms = IdSource::now().unix_ms;
    let decision = Decision { answer: Answer::Allow, by, with: AnsweredWith::Command, at_ms };
    let origin = MessageOrigin::default();
    let result = give_answer(&mut journal, &paths, &prompt, &decision, &origin, &monotonic).unwrap();
    assert!(matches!(&result, AnswerResult::DialogOnly(why) if why.contains("--no-daemon")), "{result:?}");
    assert_eq!(journal.open_prompts().unwrap(), [prompt]);
    assert_eq!(journal.messages_after(0, usize::MAX).unwrap().len(), before);
}
