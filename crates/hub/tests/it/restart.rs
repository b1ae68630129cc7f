//! What is there again when the next hub begins.

use ringer_ipc::part::{Part, PartEvent};
use ringer_journal::{Home, HubChanges, Journal, PendingDelivery};
use serde_json::json;
use test_support::until;

use crate::hub::{TestHub, draft};

/// The badge of a workspace.
fn badge(hub: &TestHub, workspace: &str) -> u64 {
    let all = hub.call("workspace.list", &json!({}));
    let found = all.as_array().into_iter().flatten().find(|one| one["id"] == workspace);
    found.and_then(|one| one["unread"].as_u64()).unwrap_or_default()
}

/// Removes files of the home.
fn remove(hub: &TestHub, beginning: &str) {
    for entry in std::fs::read_dir(hub.home().path()).expect("a home").flatten() {
        if entry.file_name().to_string_lossy().starts_with(beginning) {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
}

#[test]
fn a_place_that_was_marked_unread_is_so_until_it_is_read() {
    let mut hub = TestHub::start("");
    hub.call("notification.mark_unread", &json!({ "workspace_id": "w" }));
    assert_eq!(badge(&hub, "w"), 1);
    hub.end();
    hub.begin();
    assert_eq!(badge(&hub, "w"), 1, "it was forgotten");
    hub.call("notification.mark_read", &json!({ "workspace_id": "w" }));
    hub.end();
    hub.begin();
    assert_eq!(badge(&hub, "w"), 0, "it was read");
}

/// Its memory is not the journal: removing one of the two loses no message.
#[test]
fn a_memory_without_its_journal_and_a_journal_without_its_memory() {
    let mut hub = TestHub::start("");
    for number in 0..5 {
        hub.send(&number.to_string());
    }
    until("all are taken", || {
        hub.call("notification.list", &json!({})).as_array().is_some_and(|all| all.len() == 5)
    });
    hub.end();
    remove(&hub, "ringer.db");
    let mut journal = Journal::open(&Home::new(hub.home().path())).expect("a journal");
    let fresh = journal
        .append(&draft("the first of a new journal"), &ringer_journal::IdSource::now())
        .expect("appended");
    drop(journal);
    hub.begin();
    hub.wait_for_step(&fresh, "");
    hub.end();
    remove(&hub, "hub.db");
    hub.begin();
    let after = hub.send("after the memory was lost");
    hub.wait_for_step(&after, "");
}

#[test]
fn a_delivery_that_this_version_cannot_read_is_given_up_once() {
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let id = hub.send("hello");
    hub.wait_for_step(&id, "channels: ");
    hub.end();
    let row = |channel: &str, delivery: &str| PendingDelivery {
        id: id.clone(),
        channel: channel.into(),
        delivery: delivery.into(),
    };
    let rows = vec![row("hologram", r#"{"way":"hologram"}"#), row("desktop", "")];
    let settlement = HubChanges { started: rows, ..HubChanges::default() };
    hub.memory().commit(&settlement).expect("it is written");
    let given_up = |hub: &TestHub| {
        let log = std::fs::read_to_string(hub.home().path().join("hub.log")).expect("a log");
        log.lines().filter(|line| line.contains("giving up ")).count()
    };
    for _ in 0..2 {
        hub.begin();
        until("the outbox is empty", || hub.memory().outbox().expect("rows").is_empty());
        hub.end();
        assert_eq!(given_up(&hub), 2);
    }
    let dead = hub.memory().dead_letters().expect("letters");
    let targets: Vec<&str> = dead.iter().map(|letter| letter.target.as_str()).collect();
    assert!(targets.contains(&"hologram") && targets.contains(&"desktop") && dead.len() == 2, "{dead:?}");
}

/// A part with an error in it: the loop panics when a surface of this name is active.
struct BrokenPart;

impl Part for BrokenPart {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        if let PartEvent::SurfaceActive(surface) = event {
            assert!(surface.as_str() != "broken:1", "an error that the test made");
        }
    }
}

#[test]
fn a_loop_that_panics_is_an_error_and_the_next_hub_takes_its_messages() {
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\n");
    hub.end();
    let id = hub.send_from("broken:1", "hello");
    let error = hub.run_here(vec![Box::new(BrokenPart)]).expect_err("it panicked").to_string();
    assert_eq!(error, "the hub stopped because of an internal error: an error that the test made");
    let log = std::fs::read_to_string(hub.home().path().join("hub.log")).expect("a log");
    assert!(log.contains("an error in Ringer: ") && log.contains("an error that the test made"), "{log}");
    hub.begin();
    hub.wait_for_step(&id, "channels: ");
}
