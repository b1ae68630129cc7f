//! Spooled events of hooks where a hub may be started: only the hub applies them.

use std::fs::File;

use serde_json::json;
use test_support::until;

use super::environment::HubEnvironment;
use crate::hook::{AGENT, feed, recorded, settle};
use crate::hook_spool::{hold_lock, waiting};
use crate::ringer::{check, json as parsed};

fn hook(environment: &HubEnvironment, event: &str) -> String {
    let input = recorded(&environment.base, &format!("claude_{event}")).to_string();
    settle(&feed(environment.ringer(&["hook", "claude", event]), input.as_bytes()))
}

/// The write lock, also while the hub writes now and then.
fn lock(environment: &HubEnvironment) -> File {
    hold_lock(&environment.base)
}

/// An agent whose last event is in the spool, and no hub.
fn with_spooled_stop() -> HubEnvironment {
    let environment = HubEnvironment::new();
    hook(&environment, "UserPromptSubmit");
    environment.settled_hub();
    environment.run(&["hub", "stop"]);
    let held = lock(&environment);
    let mut command = environment.ringer(&["hook", "claude", "Stop"]);
    // The hook would start a hub.
    command.env("RINGER_HUB", "off");
    settle(&feed(command, recorded(&environment.base, "claude_Stop").to_string().as_bytes()));
    drop(held);
    assert_eq!(environment.spooled(), 1);
    environment
}

impl HubEnvironment {
    fn spooled(&self) -> usize {
        let directories = std::fs::read_dir(self.runtime_directory().join("ringer")).into_iter().flatten();
        directories.flatten().map(|directory| waiting(directory.path())).sum()
    }
}

/// Looks at the hub's log alone: a command would wake the hub.
#[test]
fn a_hub_applies_what_is_spooled_and_pushes_what_waits() {
    let environment = HubEnvironment::new();
    hook(&environment, "UserPromptSubmit");
    environment.settled_hub();
    environment.run(&["notify", "--from", "w1", "--to", AGENT, "look"]);
    let held = lock(&environment);
    assert_eq!(hook(&environment, "Stop"), "", "nothing enters the turn with a spooled event");
    drop(held);
    until("the hub has applied it", || environment.log().contains("applied 1 spooled events of hooks"));
    // No client is there to take it.
    until("what waits is pushed", || environment.log().contains(&format!("cannot push to {AGENT}")));
    assert!(environment.list(&[]).iter().any(|row| row["kind"] == "complete"));
}

#[test]
fn status_starts_a_hub_that_applies_what_is_spooled() {
    let environment = with_spooled_stop();
    // On a machine that is busy, a hub takes longer to start than the command waits for it.
    until("status shows its result", || {
        let status = environment.json(&["status", "--json"]);
        (&status["agents"][0]["state"], &status["spool"]) == (&json!("done"), &json!(null))
    });
    assert!(environment.log().contains("applied 1 spooled events of hooks"));
}

#[test]
fn listen_starts_a_hub_that_applies_what_is_spooled() {
    let environment = with_spooled_stop();
    until("it prints the message about it", || {
        let mut command = environment.ringer(&["listen", "--timeout", "0"]);
        let (out, _) = check(command.env("RINGER_AGENT", "lead"), 0);
        out.lines().next().is_some_and(|line| parsed(line)["type"] == "complete")
    });
    assert!(environment.log().contains("applied 1 spooled events of hooks"));
}

/// A hub that cannot write does not hold a command up.
#[test]
fn a_command_goes_on_without_what_the_hub_cannot_apply() {
    let environment = with_spooled_stop();
    let held = lock(&environment);
    let status = environment.json(&["status", "--json"]);
    assert_eq!((&status["agents"][0]["state"], &status["spool"]["waiting"]), (&json!("working"), &json!(1)));
    drop(held);
    // On a machine that is busy, the hub that was started may have given up on the lock.
    until("a hub has applied it", || {
        environment.run(&["status"]);
        environment.spooled() == 0
    });
}
