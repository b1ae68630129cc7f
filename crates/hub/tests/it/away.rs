//! A person who goes away and comes back.

use ringer_core::attention::AwayPeriod;
use ringer_core::engine::SavedState;
use ringer_core::message::Tag;
use ringer_core::{Draft, Kind};
use ringer_ipc::HubClient;
use serde_json::{Value, json};
use test_support::{BlockingNotificationServer, LoginManager, ServerBehaviour, SessionBus, until};

use crate::hub::{TestHub, draft};

const HELD_BACK: &str = "no popup or sound: you are away";

fn with_server() -> (SessionBus, BlockingNotificationServer, TestHub) {
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let hub = TestHub::with_bus("", Some(bus.address()));
    (bus, server, hub)
}

/// A host that says where the person is.
fn host(hub: &TestHub) -> HubClient {
    let mut host = HubClient::connect(hub.home()).expect("a hub");
    host.call("host.attach", &json!({ "name": "scripted" })).expect("attached");
    host
}

fn set_present(host: &mut HubClient, present: bool) {
    host.call("surface.views", &json!({ "views": [], "present": present })).expect("told");
}

fn error(body: &str) -> Draft {
    Draft { tag: Tag::Notice(Kind::Error), ..draft(body) }
}

#[test]
fn what_came_while_the_person_was_away_is_one_popup_when_they_come_back() {
    let (_bus, server, mut hub) = with_server();
    let mut host_of_person = host(&hub);
    set_present(&mut host_of_person, false);
    for body in ["one", "two", "three"] {
        let trail = hub.wait_for_step(&hub.send(body), HELD_BACK);
        assert!(trail.contains(&"channels: none (listed as unread)".to_owned()), "{trail:?}");
    }
    let broken = hub.append(&error("broken"));
    assert_eq!(server.next_popup().body, "broken", "what needs the person is shown");
    set_present(&mut host_of_person, true);
    let digest = server.next_popup();
    assert_eq!((digest.summary.as_str(), digest.body.as_str()), ("While you were away", "1 failed, 3 done"));
    until("it is delivered", || hub.memory().outbox().expect("readable").is_empty());
    assert_eq!(
        hub.call("notification.list", &json!({})).as_array().map(Vec::len),
        Some(4),
        "it is not listed"
    );
    let again = hub.call("notification.digest", &json!({}));
    assert_eq!(
        (&again["text"], &again["notifications"][0]["id"]),
        (&json!("1 failed, 3 done"), &json!(broken))
    );
    assert_eq!(again["counts"], json!({ "error": 1, "complete": 3 }));
    hub.end();
    hub.begin();
    set_present(&mut host(&hub), true);
    hub.send("later");
    assert_eq!(server.next_popup().body, "later", "the digest came once");
}

#[test]
fn a_restart_does_not_forget_since_when_the_person_is_away() {
    let (_bus, server, mut hub) = with_server();
    let mut first_host = host(&hub);
    set_present(&mut first_host, false);
    hub.wait_for_step(&hub.send("one"), HELD_BACK);
    let before = away(&hub).expect("stored");
    hub.end();
    hub.begin();
    hub.wait_for_step(&hub.send("two"), HELD_BACK);
    let mut next_host = host(&hub);
    set_present(&mut next_host, false);
    hub.wait_for_step(&hub.send("three"), HELD_BACK);
    assert_eq!(away(&hub), Some(before), "since then");
    set_present(&mut next_host, true);
    assert_eq!(server.next_popup().body, "3 done");
    let away = away(&hub).expect("stored");
    assert!(away.since_ms == before.since_ms && away.until_ms.is_some(), "{away:?}");
}

#[test]
fn a_hub_with_something_to_tell_stays_until_the_person_is_back() {
    let mut hub = TestHub::ending("", None, std::time::Duration::from_millis(50));
    let mut host_of_person = host(&hub);
    set_present(&mut host_of_person, false);
    let id = hub.send("done");
    hub.wait_for_step(&id, HELD_BACK);
    hub.end();
    // The next one has no client, and is away until something else is known.
    hub.begin();
    hub.let_go();
    TestHub::ending("", None, std::time::Duration::from_millis(50)).wait_for_end();
    assert!(!hub.has_ended(), "one with nothing to tell has ended");
    hub.mark_read(&id);
    hub.wait_for_end();
}

#[test]
fn a_host_that_reports_typing_and_had_none_is_away() {
    let hub = TestHub::start("[notify]\naway_after = \"1s\"\n");
    let mut host = host(&hub);
    // On a busy machine a second may pass before the message is decided.
    until("present", || {
        host.call("surface.typed", &Value::Null).expect("told");
        let trail = hub.wait_for_step(&hub.send("at once"), "channels: ");
        !trail.iter().any(|step| step.starts_with(HELD_BACK))
    });
    until("away", || away(&hub).is_some_and(|away| away.until_ms.is_none()));
    hub.wait_for_step(&hub.send("later"), HELD_BACK);
    host.call("surface.typed", &Value::Null).expect("told");
    until("back", || away(&hub).is_some_and(|away| away.until_ms.is_some()));
}

/// The last period that the hub saved.
fn away(hub: &TestHub) -> Option<AwayPeriod> {
    let states = hub.memory().states().expect("readable");
    states.iter().find_map(SavedState::read)
}

fn is_away(hub: &TestHub) -> bool {
    away(hub).is_some_and(|away| away.until_ms.is_none())
}

#[test]
fn a_locked_screen_is_away_and_unlocking_it_shows_one_digest() {
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let logind = LoginManager::start(&bus.address());
    let mut hub = TestHub::with_login_manager("", &bus.address());
    logind.set_locked(true);
    until("away", || is_away(&hub));
    for body in ["one", "two"] {
        hub.wait_for_step(&hub.send(body), HELD_BACK);
    }
    // The next hub reads the state anew.
    hub.end();
    hub.begin();
    hub.wait_for_step(&hub.send("three"), HELD_BACK);
    logind.set_locked(false);
    let digest = server.next_popup();
    assert_eq!((digest.summary.as_str(), digest.body.as_str()), ("While you were away", "3 done"));
    hub.send("four");
    assert_eq!(server.next_popup().body, "four", "one digest, and popups as ever");
    logind.set_idle(true);
    until("away again", || is_away(&hub));
    let fifth = hub.send("five");
    hub.wait_for_step(&fifth, HELD_BACK);
    hub.mark_read(&fifth);
    logind.set_idle(false);
    until("back", || !is_away(&hub));
    hub.send("six");
    assert_eq!(server.next_popup().body, "six", "there was nothing to tell");
}

#[test]
fn without_a_login_manager_nothing_is_known_and_one_that_comes_later_is_found() {
    let mut bus = SessionBus::start();
    let hub = TestHub::with_login_manager("[notify]\npopup = \"off\"\nsound = true\n", &bus.address());
    let trail = hub.wait_for_step(&hub.send("one"), "channels: ");
    assert!(!trail.iter().any(|step| step.starts_with(HELD_BACK)), "{trail:?}");
    let logind = LoginManager::start(&bus.address());
    logind.set_locked(true);
    until("away", || is_away(&hub));
    drop(logind);
    bus.stop();
    until("unknown is present", || !is_away(&hub));
    bus.restart();
    let logind = LoginManager::start(&bus.address());
    logind.set_locked(true);
    // A delivery is the reason to look again.
    until("away again", || {
        hub.send("look");
        is_away(&hub)
    });
}
