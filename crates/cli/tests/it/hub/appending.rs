//! Messages that the hub appends for the command that sends them.

use std::fs;

use rustix::process::Signal;
use test_support::until;

use super::environment::{HubEnvironment, kill};
use super::stopped::{signal, stop};
use crate::trace::Trace;

#[test]
fn with_a_hub_notify_does_not_open_the_journal() {
    let environment = HubEnvironment::new();
    environment.notify(&["first"]);
    environment.settled_hub();
    // A loaded machine may make the hub too slow for one message, and not for all.
    until("the hub appends a message", || {
        let trace =
            Trace::of(&environment.base, "openat,connect", &["notify", "--key", "one", "through the hub"]);
        assert_eq!(trace.exit, Some(0));
        assert_eq!(trace.count(&["connect(", "append.sock"]), 1, "{:?}", trace.calls);
        trace.count(&["openat(", "ringer.db"]) == 0
    });
    assert_eq!(environment.bodies(&[]), ["through the hub", "first"]);
}

#[test]
fn while_the_hub_is_stopped_notify_appends_and_later_there_is_one_message() {
    let environment = HubEnvironment::new();
    environment.notify(&["first"]);
    let hub = environment.settled_hub();
    stop(hub);
    environment.notify(&["while it was stopped"]);
    signal(hub, Signal::CONT);
    until("the hub goes on", || environment.bodies(&[]).len() > 1);
    environment.notify(&["last"]);
    let sent = ["last", "while it was stopped", "first"];
    until("all are there", || environment.bodies(&[]) == sent);
    assert_eq!(environment.run(&["log"]).matches("while it was stopped").count(), 1);
}

#[test]
fn the_socket_that_a_killed_hub_left_is_passed_over_and_the_next_hub_takes_its_place() {
    let environment = HubEnvironment::new();
    environment.notify(&["first"]);
    kill(environment.settled_hub());
    let socket = environment.base.home().join("append.sock");
    assert!(fs::symlink_metadata(&socket).is_ok());
    environment.notify(&["second"]);
    environment.settled_hub();
    assert_eq!(environment.bodies(&[]), ["second", "first"]);
    environment.run(&["hub", "stop"]);
    until("it takes its socket away", || fs::symlink_metadata(&socket).is_err());
}
