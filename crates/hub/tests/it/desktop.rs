//! Popups on a desktop, from the message in the journal to the server on the bus.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use ringer_core::message::MessageOrigin;
use ringer_core::{Draft, Kind};
use ringer_journal::HubChanges;
use serde_json::json;
use test_support::{BlockingNotificationServer, ServerBehaviour, ServerCall, SessionBus, until};

use crate::hub::{TestHub, draft};
use crate::terminal::Terminal;

fn with_server(behaviour: ServerBehaviour) -> (SessionBus, BlockingNotificationServer, TestHub) {
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), behaviour);
    let hub = TestHub::with_bus("", Some(bus.address()));
    (bus, server, hub)
}

#[test]
fn a_popup_says_what_the_message_says() {
    let (_bus, server, hub) = with_server(ServerBehaviour::Normal);
    let mut message = Draft { title: Some("Build".to_owned()), ..draft("<b>red</b> & late") };
    message.subtitle = Some("main".to_owned());
    message.tag = ringer_core::message::Tag::Notice(Kind::Error);
    let id = hub.append(&message);
    let told = server.next_popup();
    assert_eq!((told.app.as_str(), told.replaces, told.summary.as_str()), ("Ringer", 0, "Build"));
    assert_eq!(told.body, "main\n&lt;b&gt;red&lt;/b&gt; &amp; late");
    assert_eq!(told.actions, ["default", "Show"]);
    assert_eq!((told.icon.as_str(), told.expire), ("dialog-error", -1));
    assert_eq!(told.hints["urgency"].downcast_ref::<u8>().expect("a byte"), 1, "an error does not stay");
    let trail = hub.wait_for_step(&id, "desktop: ");
    assert!(trail.contains(&"desktop: shown".to_owned()), "{trail:?}");
    assert_eq!(hub.popup_number(&id), Some(1));
}

#[test]
fn the_next_of_the_same_surface_takes_its_place_even_in_another_hub() {
    let (_bus, server, mut hub) = with_server(ServerBehaviour::Normal);
    let first = hub.send_from("tmux:s1", "first");
    assert_eq!(server.next_popup().replaces, 0);
    hub.wait_for_step(&first, "desktop: ");
    let second = hub.send_from("tmux:s1", "second");
    assert_eq!(server.next_popup().replaces, 1, "the same popup, with another text");
    hub.wait_for_step(&second, "desktop: ");
    let elsewhere = hub.send_from("tmux:s2", "elsewhere");
    let other = server.next_popup();
    assert_eq!((other.replaces, other.body.as_str()), (0, "elsewhere"));
    hub.wait_for_step(&elsewhere, "desktop: ");
    assert!(hub.is_read(&first) && !hub.is_read(&second), "one unread for each surface");

    hub.end();
    hub.begin();
    hub.send_from("tmux:s1", "third");
    assert_eq!(server.next_popup().replaces, 1, "what the last hub has shown is known");
}

#[test]
fn what_is_read_is_withdrawn() {
    let (_bus, server, hub) = with_server(ServerBehaviour::Normal);
    let id = hub.send("hello");
    server.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    hub.mark_read(&id);
    assert!(matches!(server.next_call(), ServerCall::Close(1)));
    let other = hub.send_from("tmux:s1", "again");
    server.next_popup();
    hub.wait_for_step(&other, "desktop: ");
    hub.call("notification.clear", &json!({ "all": true }));
    assert!(matches!(server.next_call(), ServerCall::Close(2)), "cleared is withdrawn as well");
}

#[test]
fn a_popup_of_a_hub_that_is_gone_can_still_be_withdrawn() {
    let (_bus, server, mut hub) = with_server(ServerBehaviour::Normal);
    let id = hub.send("hello");
    server.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    hub.end();
    hub.begin();
    hub.mark_read(&id);
    assert!(matches!(server.next_call(), ServerCall::Close(1)));
}

#[test]
fn what_a_hub_did_not_come_to_close_the_next_one_closes() {
    let (_bus, server, mut hub) = with_server(ServerBehaviour::Normal);
    let (read, unread) = (hub.send("hello"), hub.send("stays"));
    for id in [&read, &unread] {
        server.next_popup();
        hub.wait_for_step(id, "desktop: ");
    }
    let popups = hub.memory().popups().expect("popups");
    let number = popups.iter().find(|popup| popup.id == read).expect("written down").number;
    hub.end();
    // As if it had been killed between writing this down and doing it.
    let mut record = hub.memory().notification(read.as_str()).expect("a hub store").expect("a notification");
    record.is_read = true;
    let settlement = HubChanges { records: vec![record], ..HubChanges::default() };
    hub.memory().commit(&settlement).expect("settled");
    hub.begin();
    assert!(matches!(server.next_call(), ServerCall::Close(closed) if closed == number));
    until("it is written down", || hub.memory().popups().expect("popups").len() == 1);
}

#[test]
fn many_at_once_are_all_shown() {
    const MANY: usize = 300;
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let mut hub = TestHub::with_bus("[notify]\nrate_limit = \"off\"\n", Some(bus.address()));
    hub.end();
    let sent: Vec<_> = (0..MANY).map(|number| hub.send_from(&format!("ws:{number}"), "hello")).collect();
    hub.begin();
    for _ in &sent {
        server.next_popup();
    }
    for id in &sent {
        hub.wait_for_step(id, "desktop: ");
    }
    hub.call("notification.mark_read", &json!({ "all": true }));
    for _ in &sent {
        assert!(matches!(server.next_call(), ServerCall::Close(_)));
    }
}

#[test]
fn closing_a_popup_by_hand_reads_it_and_running_out_of_time_does_not() {
    let (_bus, server, hub) = with_server(ServerBehaviour::Normal);
    let (expired, dismissed) = (hub.send("expires"), hub.send("is closed"));
    for id in [&expired, &dismissed] {
        server.next_popup();
        hub.wait_for_step(id, "desktop: ");
    }
    let number = |id| hub.popup_number(id).expect("a number");
    // In this order: when the second has an effect, the first would have had one.
    server.report_closed(number(&expired), 1);
    server.report_closed(number(&dismissed), 2);
    until("the one that was closed is read", || hub.is_read(&dismissed));
    assert!(!hub.is_read(&expired));
}

#[test]
fn clicking_a_popup_opens_it() {
    let (_bus, server, hub) = with_server(ServerBehaviour::Normal);
    let id = hub.send("hello");
    server.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    server.report_clicked(1, "default");
    until("it is read", || hub.is_read(&id));
}

#[test]
fn a_hub_with_a_popup_on_the_screen_stays_to_hear_the_click() {
    const SOON: Duration = Duration::from_millis(300);
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let hub = TestHub::ending("", Some(bus.address()), SOON);
    let id = hub.send("hello");
    server.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    hub.let_go();
    // One that began later and has nothing on the screen ends first.
    TestHub::ending("", None, SOON).wait_for_end();
    TestHub::ending("", None, SOON).wait_for_end();
    assert!(!hub.has_ended(), "without a hub the click would be lost");
    // Out of time: it is not read, and cannot be clicked any more.
    server.report_closed(1, 1);
    hub.wait_for_end();
}

#[test]
fn a_desktop_that_hangs_lets_the_terminal_tell() {
    let (_bus, server, hub) = with_server(ServerBehaviour::Hangs);
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("hello"));
    server.next_popup();
    let begun = std::time::Instant::now();
    terminal.wait_for("hello");
    assert!(begun.elapsed().as_secs() < 15, "within five seconds, on a machine that has time");
    let trail = hub.wait_for_step(&id, "terminal: ");
    assert!(trail.iter().any(|step| step.starts_with("desktop failed: ")), "{trail:?}");
}

#[test]
fn without_a_desktop_the_terminal_tells_at_once() {
    let bus = SessionBus::start();
    let hub = TestHub::with_bus("", Some(bus.address()));
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("no server on the bus"));
    terminal.wait_for("no server on the bus");
    let trail = hub.wait_for_step(&id, "terminal: ");
    assert!(trail.iter().any(|step| step.starts_with("desktop failed: ")), "{trail:?}");
}

#[test]
fn a_delivery_that_a_dead_hub_began_still_falls_through() {
    let (_bus, server, mut hub) = with_server(ServerBehaviour::Hangs);
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("hello"));
    server.next_popup();
    hub.end();
    hub.begin();
    terminal.wait_for("hello");
    hub.wait_for_step(&id, "terminal: ");
}

/// A process of the person in that desktop's session. It ends with the test.
struct Process(Child);

impl Process {
    fn in_session_of(bus: &SessionBus) -> Self {
        let mut command = Command::new("sleep");
        let child = command.arg("1000").env("DBUS_SESSION_BUS_ADDRESS", bus.address()).spawn();
        let process = Self(child.expect("a process"));
        let line = format!("/proc/{}/cmdline", process.0.id());
        // Forked is not yet executed: the environment is the test's own until then.
        until("it runs", || fs::read(&line).is_ok_and(|line| line.starts_with(b"sleep\0")));
        process
    }

    fn says(&self, body: &str) -> Draft {
        let origin = MessageOrigin { pid: Some(self.0.id()), ..MessageOrigin::default() };
        Draft { origin, ..draft(body) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_hub_that_was_started_without_a_desktop_learns_of_one_by_its_callers() {
    let hub = TestHub::start("");
    let id = hub.send("over ssh");
    let trail = hub.wait_for_step(&id, "desktop failed: ");
    assert!(trail.iter().any(|step| step.contains("no session bus")), "{trail:?}");
    // The person logs in.
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let process = Process::in_session_of(&bus);
    let id = hub.append(&process.says("at the desk"));
    assert_eq!(server.next_popup().body, "at the desk");
    let trail = hub.wait_for_step(&id, "desktop: ");
    let step = format!("desktop: shown on another session bus, {}", bus.address());
    assert!(trail.contains(&step), "{trail:?}");
    drop(process);
    hub.send("from anywhere");
    assert_eq!(server.next_popup().body, "from anywhere", "it stays with that");
    server.report_clicked(2, "default");
    until("clicks there are heard", || hub.call("hub.status", &json!({}))["unread"] == 2);
}

#[test]
fn a_bus_that_is_gone_gives_way_and_one_that_works_does_not() {
    let (first, other) = (SessionBus::start(), SessionBus::start());
    let [server, second] = [&first, &other]
        .map(|bus| BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal));
    let hub = TestHub::with_bus("", Some(first.address()));
    let process = Process::in_session_of(&other);
    let id = hub.append(&process.says("one"));
    assert_eq!(server.next_popup().body, "one", "the hub's own works");
    hub.wait_for_step(&id, "desktop: shown");
    drop(first);
    hub.append(&process.says("two"));
    assert_eq!(second.next_popup().body, "two");
}

#[test]
fn the_hub_says_what_it_sees_and_takes_a_bus_that_is_offered() {
    let hub = TestHub::start("");
    let environment = hub.call("hub.environment", &json!({}));
    let desktop = &environment["desktop"];
    assert_eq!((&desktop["bus"], &desktop["server"]), (&json!(null), &json!(null)), "{environment}");
    assert!(desktop["error"].as_str().is_some_and(|error| error.contains("no session bus")), "{environment}");
    assert!(environment["search_path"].is_string() && environment["terminals"].is_array(), "{environment}");
    let bus = SessionBus::start();
    let offered = json!({ "bus": bus.address() });
    assert_eq!(
        hub.call("hub.environment", &offered)["desktop"]["bus"],
        json!(null),
        "no server shows popups there"
    );
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let desktop = hub.call("hub.environment", &offered)["desktop"].clone();
    assert_eq!(
        (&desktop["bus"], &desktop["server"]),
        (&json!(bus.address()), &json!("Recorder 1 shows popups"))
    );
    hub.send("hello");
    assert_eq!(server.next_popup().body, "hello");
}
