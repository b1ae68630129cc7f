//! Popups of what agents of another machine ask.

use test_support::{BlockingNotificationServer, ServerBehaviour, SessionBus};

use super::machines::Laptop;
use crate::hub::dialogs::{decision, until_hooks_wait};
use crate::ringer::check;

const ALLOW_DENY_SHOW: [&str; 8] = ["default", "Show", "allow", "Allow", "deny", "Deny", "show", "Show"];

/// A laptop with a notification server, linked to a box. What is allowed is set in its link.
fn desk(allowed: &str) -> (Laptop, SessionBus, BlockingNotificationServer) {
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let laptop = Laptop::with_popups(allowed);
    let mut start = laptop.near.ringer(&["hub", "start"]);
    check(start.env("DBUS_SESSION_BUS_ADDRESS", bus.address()), 0);
    laptop.until_connected();
    (laptop, bus, server)
}

#[test]
fn a_permission_of_another_machine_is_decided_with_its_popup() {
    let (laptop, _bus, server) = desk("may_answer = true");
    let hook = laptop.ask_permission("make deploy");
    until_hooks_wait(&laptop.far, 1);
    let popup = server.next_popup();
    assert_eq!(popup.actions, ALLOW_DENY_SHOW);
    assert_eq!(popup.body, "Bash: make deploy", "all of it");
    server.report_clicked(1, "allow");
    assert_eq!(decision(hook)["behavior"], "allow");
}

#[test]
fn a_machine_that_may_not_be_answered_has_no_buttons() {
    let (laptop, _bus, server) = desk("may_answer = false");
    let _hook = laptop.ask_permission("make deploy");
    assert_eq!(server.next_popup().actions, ["default", "Show"]);
}

#[test]
fn what_was_read_there_without_a_connection_does_not_pop_up() {
    let (laptop, bus, server) = desk("may_answer = false");
    laptop.near.run(&["hub", "stop"]);
    laptop.far.run(&["hub", "start"]);
    let id = laptop.far.notify(&["read there"]);
    laptop.far.run(&["read", &id]);
    laptop.far.notify(&["not read"]);
    let mut start = laptop.near.ringer(&["hub", "start"]);
    check(start.env("DBUS_SESSION_BUS_ADDRESS", bus.address()), 0);
    assert_eq!(server.next_popup().body, "not read");
}
