//! One agent, with `ringer show`: with real hooks, with and without a hub.

use serde_json::json;
use test_support::until;

use super::agent_shell::AgentShell;
use super::environment::HubEnvironment;
use super::person_text::hook;

fn task(status: &str, number: usize) -> String {
    format!(
        "<task-notification>\n<status>{status}</status>\n<summary>Background command \"make {number}\" {status}</summary>\n\
         </task-notification>"
    )
}

/// A tool call, with whose result enters what waits, until this many have entered: on a busy machine nothing enters with a
/// result that cannot be written to the journal at once.
#[track_caller]
fn use_tool(environment: &HubEnvironment, agent: &mut AgentShell<'_>, call: &str, entered: usize) {
    let mut tries = 0;
    until("all have entered", || {
        tries += 1;
        let call = format!("{call}-{tries}");
        agent.hook("PostToolUse", &json!({ "tool_use_id": call, "tool_name": "Bash" }));
        let shown = environment.json(&["show", "--json"]);
        shown["entered"].as_array().is_some_and(|all| all.len() == entered)
    });
}

#[test]
fn what_entered_the_turns_of_an_agent_is_shown_with_its_source() {
    let environment = HubEnvironment::new();
    let nothing = environment.fails(&["show"], 65);
    assert!(nothing.contains("no agent has reported yet"), "{nothing}");
    let mut agent = AgentShell::start(&environment);
    agent.hook("SessionStart", &json!({}));
    agent.hook("UserPromptSubmit", &json!({}));
    environment.settled_hub();
    let to_agent = ["--to", "claude-01234567"];
    let notify = |from: &str, text: &str| {
        environment.notify(&[&["--from", from][..], &to_agent, &[text]].concat());
    };
    environment.type_message("claude-01234567", "actually wait, \u{1b}[31mtry a different approach");
    use_tool(&environment, &mut agent, "t1", 1);
    for number in 1..=3 {
        notify("ci", &task("completed", number));
    }
    notify("ci", &task("killed", 4));
    use_tool(&environment, &mut agent, "t2", 5);
    notify("w1", "日本語");

    for words in [&["show"][..], &["show", "CLAUDE-0123"], &["show", "0123456789"], &["show", "repository"]] {
        let shown = environment.run(words);
        assert!(shown.contains("┌─ notification (user) · "), "{shown}");
        assert!(shown.contains("│ actually wait, [31mtry a different approach\n"), "{shown}");
        assert!(shown.contains("│ 3 background commands completed\n"), "{shown}");
        assert!(shown.contains("│ Background command \"make 4\" killed\n"), "{shown}");
        assert!(!shown.contains("make 1") && shown.contains("not seen yet"), "{shown}");
        let waits = shown.find("agent:w1: 日本語").expect("it waits");
        assert!(waits < shown.find("Entered its turns").expect("a heading"), "{shown}");
    }
    use_tool(&environment, &mut agent, "t3", 6);
    let verbose = environment.run(&["show", "-v"]);
    assert!(verbose.contains("make 1") && !verbose.contains("3 background"), "{verbose}");
    assert!(!verbose.contains("Waits to enter"), "{verbose}");
    let json = environment.json(&["show", "--json"]);
    assert_eq!((&json["id"], &json["state"]), (&json!("claude-01234567"), &json!("working")));
    let entered = json["entered"].as_array().expect("rows");
    let sources: Vec<&str> = entered.iter().filter_map(|one| one["source"].as_str()).collect();
    assert_eq!(sources, ["user", "agent:ci", "agent:ci", "agent:ci", "agent:ci", "agent:w1"]);
    assert!(entered[4]["seen"].is_string() && entered[5]["seen"].is_null(), "{json}");

    let mut plain = environment.ringer(&["show"]);
    plain.env("LC_ALL", "C").env("COLUMNS", "60");
    let (plain, _) = crate::ringer::check(&mut plain, 0);
    assert!(plain.contains("\n+- notification (user), ") && plain.contains("\n| ???\n"), "{plain}");
    assert!(plain.lines().all(|line| line.chars().count() <= 60), "{plain}");
}

#[test]
fn background_tasks_that_somebody_reports_are_collapsed_unless_one_failed() {
    let environment = HubEnvironment::new();
    let mut agent = AgentShell::start(&environment);
    agent.hook("SessionStart", &json!({}));
    agent.hook("UserPromptSubmit", &json!({}));
    environment.settled_hub();
    let sent = [
        ["status", "lint has ended: 0"],
        ["complete", "make has ended: 0"],
        ["status", "tests have ended: 101"],
        ["error", "deploy"],
    ];
    for [kind, text] in sent {
        let options = ["--from", "ci", "--to", "claude-01234567", "--source", "background_task"];
        environment.notify(&[&options[..], &["--kind", kind, text]].concat());
    }
    use_tool(&environment, &mut agent, "t1", 4);
    let shown = environment.run(&["show"]);
    for line in ["│ 2 background commands completed\n", "│ tests have ended: 101\n", "│ deploy\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    let verbose = environment.run(&["show", "-v"]);
    assert!(verbose.contains("lint has ended: 0") && verbose.contains("make has ended: 0"), "{verbose}");
}

#[test]
fn an_agent_that_cannot_be_meant_is_answered_with_those_that_can() {
    let environment = HubEnvironment::new();
    hook(&environment, "SessionStart", &json!({}));
    let unknown = environment.fails(&["show", "nothing"], 65);
    assert!(unknown.contains("unknown agent \"nothing\"; known are:\n  claude-01234567"), "{unknown}");
    hook(&environment, "SessionStart", &json!({ "session_id": "9876543210" }));
    let several = environment.fails(&["show"], 64);
    assert!(several.contains("2 agents run in this repository:\n  claude-"), "{several}");
    let several = environment.fails(&["show", "claude"], 64);
    assert!(
        several.contains("\"claude\" fits 2 agents:") && several.contains("ringer show claude-"),
        "{several}"
    );
    hook(&environment, "SessionEnd", &json!({ "session_id": "9876543210", "reason": "clear" }));
    assert!(environment.run(&["show", "claude"]).contains("claude-01234567"), "the one that runs");
}
