//! A hub that cannot start says why, to everybody who would have used it.

use std::fs;

use serde_json::json;
use test_support::until;

use super::environment::HubEnvironment;
use crate::ringer::check;

/// What is in the way of the hub's doorbell, and what the system says about it.
const IN_THE_WAY: &str = "bells/hub.fifo";
const WHY: &str = "hanging the hub's doorbell: ";

/// A environment in which no hub can start.
fn broken() -> HubEnvironment {
    let environment = HubEnvironment::new();
    let mut notify = environment.ringer(&["notify", "hello"]);
    check(notify.env("RINGER_HUB", "off"), 0);
    fs::create_dir_all(environment.base.home().join(IN_THE_WAY).join("something")).expect("a directory");
    environment
}

#[test]
fn the_reason_is_in_the_log_and_every_command_can_say_it() {
    let environment = broken();
    let (_, silent) = check(&mut environment.ringer(&["notify", "first"]), 0);
    assert_eq!(silent, "", "no start has failed yet");
    // The log has the reason before the commands do.
    until("it has failed", || environment.run(&["hub", "status"]).contains("the hub could not start ("));
    assert!(environment.log().contains(WHY), "{}", environment.log());
    let home = environment.base.home();
    for arguments in [&["hub", "status"][..], &["status"], &["doctor"]] {
        let output = environment.ringer(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("the hub could not start (") && said.contains(WHY), "{arguments:?}: {said}");
        let is_doctor = arguments == ["doctor"];
        assert_eq!(output.status.code(), Some(i32::from(is_doctor)), "{arguments:?}");
    }
    let status = environment.json(&["status", "--json"]);
    assert!(status["hub_failure"]["why"].as_str().is_some_and(|why| why.starts_with(WHY)), "{status}");
    let (_, said) = check(&mut environment.ringer(&["notify", "second"]), 0);
    assert!(said.contains("stored, but not shown yet") && said.contains(WHY), "{said}");

    // What is shown without a hub is shown, with the reason, and nothing waits for a hub that does not come.
    let (list, said) = check(&mut environment.ringer(&["list", "--json"]), 0);
    assert!(list.contains("\"second\"") && said.contains(WHY), "{list}{said}");
    assert!(environment.fails(&["hub", "start"], 69).contains(WHY));
    assert!(environment.fails(&["watch"], 69).contains(WHY));

    fs::remove_dir_all(home.join(IN_THE_WAY)).expect("removed");
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&[]), ["second", "first", "hello"]);
    let status = environment.json(&["status", "--json"]);
    assert_eq!((&status["hub_failure"], status["hub"].is_u64()), (&json!(null), true), "{status}");
    environment.run(&["hub", "stop"]);
    assert_eq!(environment.run(&["hub", "status"]), "the hub is not running; the next message starts it\n");
}

#[test]
fn a_file_in_place_of_its_doorbell_does_not_keep_it_from_starting() {
    let environment = HubEnvironment::new();
    let mut notify = environment.ringer(&["notify", "one"]);
    check(notify.env("RINGER_HUB", "off"), 0);
    fs::write(environment.base.home().join(IN_THE_WAY), "").expect("a file");
    environment.notify(&["two"]);
    environment.settled_hub();
    assert_eq!(environment.bodies(&[]), ["two", "one"]);
}
