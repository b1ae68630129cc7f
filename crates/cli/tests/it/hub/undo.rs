//! `ringer undo`, with hubs that are killed in between.

use serde_json::json;
use test_support::until;

use super::environment::{HubEnvironment, kill};
use super::person_text::hook;
use crate::ringer::check;

/// The next hub has to go on with what the last one saved.
fn replace_hub(environment: &HubEnvironment) {
    kill(environment.settled_hub());
    environment.run(&["hub", "start"]);
}

#[test]
fn commands_are_taken_back_one_by_one_also_by_another_hub() {
    let environment = HubEnvironment::new();
    let ids = ["a", "b", "c"].map(|body| environment.notify(&[body]));
    assert_eq!(environment.run(&["read", &ids[0], &ids[1]]), "2 read\n");
    replace_hub(&environment);
    assert_eq!(environment.run(&["clear", "--all"]), "3 removed\n");
    replace_hub(&environment);
    assert_eq!(environment.bodies(&[]), [] as [&str; 0]);
    assert_eq!(environment.run(&["undo"]), "3 back on the list\n");
    assert_eq!(environment.bodies(&[]), ["c", "b", "a"]);
    assert_eq!(environment.bodies(&["--unread"]), ["c"], "as they were when they were cleared");
    replace_hub(&environment);
    assert_eq!(environment.bodies(&[]), ["c", "b", "a"], "what is back stays");
    let undone = environment.json(&["undo", "--json"]);
    assert_eq!(undone, json!({ "undone": "read", "unread": 2, "listed": 0 }));
    assert_eq!(environment.bodies(&["--unread"]), ["c", "b", "a"]);
    replace_hub(&environment);
    assert_eq!(environment.run(&["undo"]), "Nothing to undo.\n");
    assert_eq!(environment.json(&["undo", "--json"])["undone"], json!(null));
    let why = environment.run(&["why", &ids[0]]);
    assert!(why.contains("clearing it was taken back") && why.contains("reading it was taken back"), "{why}");
}

#[test]
fn it_works_without_a_hub_and_the_next_one_agrees() {
    let environment = HubEnvironment::new();
    let ids = ["a", "b"].map(|body| environment.notify(&[body]));
    environment.settled_hub();
    environment.run(&["clear", &ids[0]]);
    kill(environment.hub());
    let off = |arguments: &[&str]| {
        let mut command = environment.ringer(arguments);
        check(command.env("RINGER_HUB", "off"), 0)
    };
    off(&["read", &ids[1]]);
    assert_eq!(off(&["undo"]).0, "1 unread again\n");
    assert_eq!(off(&["undo"]).0, "1 back on the list\n");
    assert_eq!(off(&["undo"]).0, "Nothing to undo.\n");
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&["--unread"]), ["a", "b"], "what was cleared comes back at the top");
    assert_eq!(environment.run(&["undo"]), "Nothing to undo.\n");
}

#[test]
fn what_the_agent_went_on_with_does_not_come_back() {
    let environment = HubEnvironment::new();
    let permission = json!({ "tool_name": "Bash", "tool_input": { "command": "make" } });
    hook(&environment, "SessionStart", &json!({}));
    hook(&environment, "UserPromptSubmit", &json!({}));
    hook(&environment, "PermissionRequest", &permission);
    environment.notify(&["--from", "ci", "--kind", "error", "broken"]);
    until("both are listed", || environment.list(&[]).len() == 2);
    assert_eq!(environment.run(&["clear", "--all"]), "2 removed\n");
    hook(&environment, "PostToolUse", &permission);
    replace_hub(&environment);
    assert_eq!(environment.run(&["undo"]), "1 back on the list\n");
    assert_eq!(environment.bodies(&["--unread"]), ["broken"]);
}
