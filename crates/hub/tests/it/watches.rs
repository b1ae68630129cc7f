//! File watches.

use std::fs;

use serde_json::json;

use crate::hub::{TestHub, until};

fn hub(directory: &std::path::Path, script: &str) -> TestHub {
    let (file, command) = (directory.join("flake.nix"), json!(["sh", "-c", script]));
    let watch = format!("[[watch]]\npaths = [{}]\ncommand = {command}\nagent = \"worker-1\"\n", json!(file));
    TestHub::start(&watch)
}

#[test]
fn a_change_runs_the_command_and_the_agent_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let hub = hub(directory.path(), "echo loaded; basename \"$RINGER_WATCH_PATH\"");
    fs::write(directory.path().join("beside.nix"), "x").expect("a file");
    fs::write(directory.path().join("flake.nix"), "x").expect("a file");
    let mut messages = Vec::new();
    until("a message for the agent", || {
        messages = hub.journal().messages_after(0, 10).expect("messages");
        !messages.is_empty()
    });
    let draft = &messages[0].draft;
    assert_eq!(draft.recipient.to_string(), "agent:worker-1");
    assert!(
        draft.body.starts_with("flake.nix changed; ") && draft.body.ends_with("loaded\nflake.nix"),
        "{draft:?}"
    );
    // As editors do it.
    fs::write(directory.path().join(".flake.nix.swp"), "y").expect("a file");
    fs::rename(directory.path().join(".flake.nix.swp"), directory.path().join("flake.nix")).expect("a file");
    until("a second message", || hub.journal().messages_after(0, 10).expect("messages").len() == 2);
}

#[test]
fn a_change_is_told_in_the_footer() {
    let directory = tempfile::tempdir().expect("a directory");
    let hub = hub(directory.path(), "echo loaded");
    let toasts = hub.follow("toast");
    fs::write(directory.path().join("flake.nix"), "x").expect("a file");
    let says = |data: &serde_json::Value| {
        data["text"].as_str().is_some_and(|text| text.contains("flake.nix changed"))
    };
    toasts.next("a toast", says);
}
