//! What is there again when the next hub begins.

use ringer_journal::{Home, Journal};
use serde_json::json;

use crate::hub::{TestHub, draft, until};

/// The badge of a workspace.
fn badge(hub: &TestHub, workspace: &str) -> u64 {
    let all = hub.call("workspace.list", &json!({}));
    let found = all.as_array().into_iter().flatten().find(|one| one["id"] == workspace);
    found.and_then(|one| one["badge"].as_u64()).unwrap_or_default()
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

/// Its memory is not the journal: whoever removes one of the two loses no message.
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
        .append(&draft("the first of a new journal"), &ringer_journal::Stamp::now())
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
