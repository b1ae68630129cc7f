//! The home, or the doorbells in it, are removed under a hub that runs: it ends, and leaves the home to the next one.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::to_string;
use test_support::until;

use super::environment::{HubEnvironment, runs};
use super::snapshots::wait_until_delivered;
use super::stopped::signal;

/// An environment with a command that notes each message in a file outside of the home.
fn with_command() -> HubEnvironment {
    let environment = HubEnvironment::new();
    let noted = to_string(&environment.base.path().join("noted")).expect("a path");
    environment.set(&format!(
        "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n\
         command = [\"sh\", \"-c\", 'echo \"$RINGER_NOTIFICATION_BODY\" >> \"$0\"', {noted}]\n"
    ));
    environment
}

/// The messages for which the command ran, sorted: commands run beside each other.
fn noted(environment: &HubEnvironment) -> Vec<String> {
    let noted = fs::read_to_string(environment.base.path().join("noted")).unwrap_or_default();
    let mut bodies: Vec<String> = noted.lines().map(str::to_owned).collect();
    bodies.sort();
    bodies
}

/// Sends messages, and waits until the hub has delivered them. Gives its process.
fn begun(environment: &HubEnvironment) -> u32 {
    environment.notify(&["old-1"]);
    environment.notify(&["old-2"]);
    let hub = environment.settled_hub();
    wait_until_delivered(environment);
    assert_eq!(noted(environment), ["old-1", "old-2"]);
    hub
}

/// The hub may remove files of its own meanwhile.
fn remove(directory: &Path) {
    until("it is removed", || fs::remove_dir_all(directory).is_ok() || !directory.exists());
}

/// Checks that another hub has the home, and that it stays with it.
#[track_caller]
fn check_one_other_hub(environment: &HubEnvironment, old: u32, listed: &[&str]) {
    until("the old hub ends", || !runs(old));
    let new = environment.settled_hub();
    assert_ne!(new, old);
    assert_eq!(environment.bodies(&[]), listed);
    environment.notify(&["last"]);
    assert_eq!(environment.bodies(&[])[1..], *listed);
    assert_eq!(environment.settled_hub(), new, "its lock, doorbell and address are still there");
    wait_until_delivered(environment);
    environment.run(&["hub", "stop"]);
    assert_eq!(noted(environment), ["last", "new-1", "old-1", "old-2"], "each once");
}

#[test]
fn a_hub_ends_when_its_home_is_removed() {
    let environment = with_command();
    let old = begun(&environment);
    remove(&environment.base.home());
    environment.notify(&["new-1"]);
    check_one_other_hub(&environment, old, &["new-1"]);
}

/// It is stopped until the next hub has the home: whatever it does first when it goes on, it must not touch that home.
#[test]
fn a_hub_that_notices_late_leaves_the_home_to_the_next_one() {
    let environment = with_command();
    let old = begun(&environment);
    signal(old, Signal::STOP);
    remove(&environment.base.home());
    environment.notify(&["new-1"]);
    until("the new one is delivered", || noted(&environment).len() == 3);
    signal(old, Signal::CONT);
    check_one_other_hub(&environment, old, &["new-1"]);
}

#[test]
fn a_hub_that_cannot_be_woken_ends_and_the_next_one_goes_on() {
    let environment = with_command();
    let old = begun(&environment);
    remove(&environment.base.home().join("bells"));
    environment.notify(&["new-1"]);
    check_one_other_hub(&environment, old, &["new-1", "old-2", "old-1"]);
    assert_eq!(environment.log().matches("doorbell was removed: ending without writing").count(), 1);
}
