//! A hook's event that was spooled, because the journal could not be written: the hub takes it in.

use std::fs::OpenOptions;

use test_support::until;

use super::environment::HubEnvironment;
use crate::hook::{AGENT, feed, recorded, settle};

fn hook(environment: &HubEnvironment, event: &str) -> String {
    let input = recorded(&environment.base, &format!("claude_{event}")).to_string();
    settle(&feed(environment.ringer(&["hook", "claude", event]), input.as_bytes()))
}

/// Looks at the hub's log alone: commands that show something would take the event in themselves.
#[test]
fn a_hub_takes_in_what_is_spooled_and_pushes_what_waits() {
    let environment = HubEnvironment::new();
    hook(&environment, "UserPromptSubmit");
    environment.settled_hub();
    environment.run(&["notify", "--from", "w1", "--to", AGENT, "look"]);
    let lock = OpenOptions::new().append(true).open(environment.base.home().join("write.lock"));
    let lock = lock.expect("a lock");
    lock.lock().expect("it comes free");
    assert_eq!(hook(&environment, "Stop"), "", "nothing enters the turn with a spooled event");
    drop(lock);
    until("the hub has taken it in", || environment.log().contains("took in 1 spooled events of hooks"));
    // No client is there to take it.
    until("what waits is pushed", || environment.log().contains(&format!("cannot push to {AGENT}")));
    assert!(environment.list(&[]).iter().any(|row| row["kind"] == "complete"));
}
