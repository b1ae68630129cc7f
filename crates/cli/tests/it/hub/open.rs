//! What is open, and what ends it, through hooks, commands and hubs that are killed.

use serde_json::{Value, json};
use test_support::until;

use super::environment::{HubEnvironment, kill};
use super::person_text::{hook, hook_on};

fn permission(command: &str) -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": command } })
}

/// What is open, as its text, once that is what is expected.
#[track_caller]
fn until_open(environment: &HubEnvironment, expected: &[&str]) {
    until("what is open is as expected", || {
        let rows = environment.list(&[]);
        let open = rows.iter().rev().filter(|row| row["is_open"] == true && row["kind"] != "status");
        open.map(|row| row["body"].as_str().unwrap_or_default()).eq(expected.iter().copied())
    });
}

/// What ended the notification with this text, once it has ended.
#[track_caller]
fn end_of(environment: &HubEnvironment, body: &str) -> String {
    let mut end = None;
    until("it has ended", || {
        let rows = environment.list(&[]);
        let id = rows.iter().find(|row| row["body"] == body).and_then(|row| row["id"].as_str());
        let why = id.map(|id| environment.run(&["why", id])).unwrap_or_default();
        end = why.lines().find_map(|line| Some(line.split_once("over: ")?.1.to_owned()));
        end.is_some()
    });
    end.expect("it has ended")
}

#[test]
fn two_prompts_stay_open_until_each_goes_on_whatever_is_read_and_killed() {
    let environment = HubEnvironment::new();
    hook(&environment, "SessionStart", &json!({}));
    hook(&environment, "UserPromptSubmit", &json!({}));
    hook(&environment, "PermissionRequest", &permission("make a"));
    hook(&environment, "PermissionRequest", &permission("make b"));
    until_open(&environment, &["Bash: make a", "Bash: make b"]);
    environment.run(&["read", "--all"]);
    kill(environment.settled_hub());
    // Another hub reads what the first one wrote down.
    environment.notify(&["--from", "ci", "--kind", "status", "hello"]);
    environment.settled_hub();
    until_open(&environment, &["Bash: make a", "Bash: make b"]);
    assert!(environment.list(&[]).iter().all(|row| row["is_read"] == true || row["kind"] == "status"));
    let words = environment.run::<&str>(&[]);
    assert!(words.starts_with("2 need you\n"), "{words}");
    // A tool that ran beside them ends neither.
    hook(&environment, "PostToolUse", &permission("make c"));
    hook(&environment, "PostToolUse", &permission("make b"));
    until_open(&environment, &["Bash: make a"]);
    assert_eq!(end_of(&environment, "Bash: make b"), "the agent went on");
    kill(environment.settled_hub());
    hook(&environment, "SessionEnd", &json!({ "reason": "prompt_input_exit" }));
    until_open(&environment, &[]);
    assert_eq!(end_of(&environment, "Bash: make a"), "the session ended");
}

#[test]
fn a_completion_is_open_until_the_person_goes_on() {
    let environment = HubEnvironment::new();
    hook(&environment, "SessionStart", &json!({}));
    hook(&environment, "UserPromptSubmit", &json!({}));
    hook(&environment, "Stop", &json!({ "last_assistant_message": "All 214 tests pass." }));
    until_open(&environment, &["All 214 tests pass."]);
    let message = json!({ "prompt": "<notification source=\"agent:w\">\nready\n</notification>" });
    hook(&environment, "UserPromptSubmit", &message);
    environment.settled_hub();
    until_open(&environment, &["All 214 tests pass."]);
    hook(&environment, "UserPromptSubmit", &json!({ "prompt": "now the docs" }));
    until_open(&environment, &[]);
    assert_eq!(end_of(&environment, "All 214 tests pass."), "you gave the agent its next prompt");
}

#[test]
fn a_newer_message_of_the_same_key_replaces_and_a_status_ends_with_its_time() {
    let environment = HubEnvironment::new();
    environment.notify(&["--from", "ci", "--kind", "error", "--key", "main", "3 tests fail"]);
    environment.notify(&["--from", "other", "--kind", "error", "--key", "main", "not mine"]);
    until_open(&environment, &["3 tests fail", "not mine"]);
    environment.notify(&["--from", "ci", "--kind", "complete", "--key", "main", "all pass"]);
    until_open(&environment, &["not mine", "all pass"]);
    assert_eq!(end_of(&environment, "3 tests fail"), "a newer one with the same key replaced it");
    environment.notify(&["--from", "ci", "--kind", "error", "--ttl", "1s", "the disk is slow"]);
    assert_eq!(end_of(&environment, "the disk is slow"), "its time was over");
    let refused = environment.fails(&["notify", "--key", "episode:a:1", "x"], 65);
    assert!(refused.contains("the key begins with \"episode:\", as Ringer's own do"), "{refused}");
}

/// A toast alone does not reach the person: most of the time no program shows a footer.
#[test]
fn a_limit_and_a_changed_model_reach_the_person_and_the_newer_one_replaces() {
    let environment = HubEnvironment::new();
    for (source, text) in [
        ("rate-limit-warning", "80% of the five hour limit is used"),
        ("rate-limit-warning", "93% of the five hour limit is used"),
        ("model-migration", "claude-1: the model changed from Opus to Haiku"),
        ("rate-limit-warning", "80% of the week's limit is used"),
    ] {
        environment.run(&["observe", source, text]);
    }
    let mut told = Vec::new();
    until("they are told", || {
        let rows = environment.list(&[]);
        let open = rows.iter().filter(|row| row["is_open"] == true && row["kind"] == "status");
        told = open.map(|row| row["body"].as_str().unwrap_or_default().to_owned()).collect();
        told.len() == 2 && told.iter().any(|text| text.contains("week"))
    });
    assert!(told.iter().any(|text| text.contains("from Opus to Haiku")), "{told:?}");
    let sent = environment.list(&[]).iter().filter(|row| row["title"] == "limit near").count();
    assert_eq!(sent, 2, "one for each limit, not for each percent");
}

/// What a terminal shows is delayed, so that the agent's hooks come first. Its process may be seen to end meanwhile.
#[test]
fn what_a_terminal_showed_before_its_agent_ended_makes_no_other_agent() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    hook_on(&environment, "ws:a", "SessionStart", &json!({}));
    let other = json!({ "session_id": "9876543210" });
    hook_on(&environment, "ws:b", "SessionStart", &other);
    hook_on(&environment, "ws:b", "UserPromptSubmit", &other);
    hook_on(&environment, "ws:a", "SessionEnd", &json!({ "reason": "prompt_input_exit" }));
    let mut hub = environment.connect();
    for (surface, authority, state) in
        [("ws:a", "title", "working"), ("ws:a", "process", "exited"), ("ws:b", "process", "exited")]
    {
        let says = json!({ "is": { "state": state } });
        let signal = json!({ "authority": authority, "says": says, "text": null, "pending": false });
        let params = json!({ "surface_id": surface, "signal": signal });
        assert_eq!(hub.call("surface.heard", &params)["ok"], true);
    }
    // The last one ended in the middle of a turn. All signals are delayed by the same time, so the others came before it.
    let errors = || environment.list(&[]).into_iter().filter(|row| row["kind"] == "error");
    until("its end is told", || errors().any(|row| row["surface"] == "ws:b"));
    assert_eq!(errors().map(|row| row["surface"].clone()).collect::<Vec<_>>(), ["ws:b"]);
}
