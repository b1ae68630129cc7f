//! What stays in the hub store when the journal is pruned or repaired, or a repository is removed.

use std::fs;
use std::time::Duration;

use ringer_core::agent::AgentTimeouts;
use ringer_core::attention::{Cause, TrailStep};
use ringer_core::engine::FeatureValue;
use ringer_core::message::Agent;
use ringer_core::{MessageId, Recipient, Scope};
use ringer_journal::{Consumer, HubChanges, HubPruning, HubStore, Journal, ReadPosition, RetentionLimits};
use rusqlite::Connection;

use super::{dead, flag, mute, outgoing, popup, record, settle, undo_item, undo_items};
use crate::agent::{JournalAt, agent_info};
use crate::home::{TestHome, at, bodies, draft_in, place, read_to, scope};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn send(journal: &mut Journal, scope: &Scope, body: &str, unix_ms: i64) -> MessageId {
    journal.append(&draft_in(scope.clone(), body), &at(unix_ms)).expect("appended")
}

/// Prunes messages from before the last pruning.
fn prune(journal: &mut Journal) -> usize {
    let limits = RetentionLimits { prunings: 1, ..RetentionLimits::default() };
    journal.prune(limits, &at(0)).expect("pruned").messages
}

/// Prunes the hub store. Returns the number of pieces.
fn prune_store(store: &mut HubStore, oldest: &MessageId) -> usize {
    let mut left = Some(HubPruning::of(oldest));
    let mut pieces = 0;
    while let Some(pruning) = left.take() {
        left = store.prune(pruning).expect("pruned");
        pieces += 1;
    }
    pieces
}

#[test]
fn much_is_removed_from_the_hub_store_in_pieces() {
    let test = TestHome::new();
    let mut store = test.memory();
    let ids: Vec<MessageId> = (0..2_000).map(|number| at(number * 1_000).message_id()).collect();
    let records = ids.iter().enumerate().map(|(number, id)| record(id, number % 7 != 0, 0..2)).collect();
    settle(&mut store, &HubChanges { records, ..HubChanges::default() });
    let oldest = at(1_900 * 1_000).message_id();
    assert!(prune_store(&mut store, &oldest) > 5, "one transaction for all of them would hold up the hub");
    for (number, id) in ids.iter().enumerate() {
        let stays = number % 7 == 0 || number >= 1_900;
        assert_eq!(store.notification(id.as_str()).unwrap().is_some(), stays, "{number}");
        assert_eq!(store.trail(id.as_str()).unwrap().steps().len(), if stays { 2 } else { 0 }, "{number}");
    }
    assert_eq!(prune_store(&mut store, &at(0).message_id()), 1, "nothing is as old as that");
}

#[test]
fn what_the_hub_has_not_taken_stays_in_every_scope() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (name, body) in [("aaaaaaaa", "one"), ("bbbbbbbb", "two"), ("aaaaaaaa", "three")] {
        send(&mut journal, &scope(name), body, 0);
    }
    for name in ["aaaaaaaa", "bbbbbbbb"] {
        read_to(&mut journal, &Consumer::new("lead", scope(name)).unwrap(), 3, 20 * DAY);
    }
    prune(&mut journal);
    let first = place(&mut journal, 1);
    journal.advance_hub(&first, 0).unwrap();
    assert_eq!(prune(&mut journal), 1);
    assert_eq!(bodies(&mut journal), ["two", "three"]);
    assert_eq!(prune(&mut journal), 2, "a hub that is no longer used");
}

#[test]
fn one_that_was_made_first_and_came_second_is_the_oldest() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), "old", 0);
    prune(&mut journal);
    // A writer that waits for the lock has chosen its id already.
    let [_, waited] = [DAY + 7, DAY].map(|made| send(&mut journal, &Scope::global(), "hello", made));
    assert_eq!(journal.kept_from().unwrap(), None, "nothing was removed yet");
    assert_eq!(prune(&mut journal), 1);
    assert_eq!(journal.kept_from().unwrap(), Some(waited.clone()));
    let mut store = test.memory();
    settle(&mut store, &HubChanges { records: vec![record(&waited, true, 0..2)], ..HubChanges::default() });
    prune_store(&mut store, &journal.kept_from().unwrap().expect("two are there"));
    assert!(store.notification(waited.as_str()).unwrap().is_some(), "the journal still has it");
}

#[test]
fn what_is_read_goes_with_its_message_and_what_is_unread_stays() {
    let test = TestHome::new();
    let mut journal = test.open();
    let [read, unread, silent] =
        ["read", "unread", "silent"].map(|body| send(&mut journal, &Scope::global(), body, 0));
    prune(&mut journal);
    let [kept, kept_silent] =
        ["kept", "kept, silent"].map(|body| send(&mut journal, &Scope::global(), body, 20 * DAY));
    let step = |id: &MessageId| (id.clone(), TrailStep { unix_ms: 0, cause: Cause::Expired });
    let transaction = HubChanges {
        records: vec![record(&read, true, 0..2), record(&unread, false, 0..2), record(&kept, true, 0..2)],
        steps: vec![step(&silent), step(&kept_silent)],
        ..HubChanges::default()
    };
    let mut store = test.memory();
    settle(&mut store, &transaction);
    assert_eq!(prune(&mut journal), 3);
    prune_store(&mut store, &journal.kept_from().unwrap().expect("two are left"));
    let mut check = |id: &MessageId, is_there: bool, steps: usize| {
        assert_eq!(store.notification(id.as_str()).unwrap().is_some(), is_there);
        assert_eq!(store.trail(id.as_str()).unwrap().steps().len(), steps);
    };
    check(&read, false, 0);
    check(&unread, true, 2);
    check(&silent, false, 0);
    check(&kept, true, 2);
    check(&kept_silent, false, 1);
}

/// Writes a row of one scope to every table. Returns the notification.
pub(crate) fn fill(test: &TestHome, scope: &Scope, agent: &str) -> MessageId {
    let mut journal = test.open();
    let id = send(&mut journal, scope, "a message", 0);
    let mut to_agent = draft_in(scope.clone(), "for an agent");
    to_agent.recipient = Recipient::Agent(Agent::new("worker").expect("a name"));
    journal.append(&to_agent, &at(0)).expect("appended");
    journal.ask(&draft_in(scope.clone(), "why?"), "why?", &[], &at(0), None).expect("asked");
    read_to(&mut journal, &Consumer::new("lead", scope.clone()).expect("a name"), 1, 0);
    journal.want_lead(scope, true).expect("wanted");
    let mut of = agent_info(agent);
    of.scope = scope.clone();
    JournalAt::at(&mut journal, 0).working(&of);
    let number = 1 + i64::try_from(undo_items(&mut test.memory()).len()).expect("few");
    let transaction = HubChanges {
        undecided: vec![id.clone()],
        records: vec![record(&id, false, 0..2)],
        started: vec![outgoing(&id, "desktop", "{}")],
        shown: vec![popup(scope.as_str(), &id, 1)],
        dead_letters: vec![dead(&id, 1)],
        states: vec![undo_item(number, &id).saved(), mute(scope.as_str()).saved()],
        position: Some(ReadPosition { cursor: place(&mut journal, 1), catch_up: None }),
        flags_set: vec![flag("manual", scope.as_str())],
        ..HubChanges::default()
    };
    settle(&mut test.memory(), &transaction);
    id
}

fn count(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a table")
}

const OF_THE_JOURNAL: [&str; 6] = ["message", "receipt", "cursor", "question", "agent", "lead"];
const OF_THE_MEMORY: [&str; 9] =
    ["notification", "trail", "undecided", "outbox", "popup", "dead_letter", "flag", "hub_position", "state"];

/// Number of rows in each table.
fn counts(test: &TestHome) -> Vec<(&'static str, i64)> {
    let (journal, store) = (test.connection(), test.memory_connection());
    let of = |connection: &Connection, tables: &[&'static str]| {
        tables.iter().map(|table| (*table, count(connection, table))).collect::<Vec<_>>()
    };
    [of(&journal, &OF_THE_JOURNAL), of(&store, &OF_THE_MEMORY)].concat()
}

/// Overwrites the root page of a table, in a file without a WAL.
fn ruin(connection: Connection, table: &str) {
    let find = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = connection.query_row(find, [table], |row| row.get(0)).expect("a table");
    let path = connection.path().expect("a file").to_owned();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("no other process has it open");
    connection.close().expect("closed");
    let root = usize::try_from(root).expect("small");
    let mut bytes = fs::read(&path).expect("a database");
    bytes[(root - 1) * 4096..root * 4096].fill(0xff);
    fs::write(&path, bytes).expect("written");
}

#[test]
fn a_repair_carries_everything_over_that_the_hub_and_the_agents_remember() {
    let test = TestHome::new();
    fill(&test, &scope("aaaaaaaa"), "claude-1");
    let before = counts(&test);
    assert!(before.iter().all(|(_, rows)| *rows > 0), "{before:?}");
    // Only the table of waiting processes is not rescued.
    ruin(test.connection(), "waiter");
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), "after", 1);
    assert!(journal.repair().is_some(), "it was noticed");
    let mut after = counts(&test);
    after[0].1 -= 1;
    assert_eq!(after, before);
}

#[test]
fn a_damaged_memory_is_set_aside_and_costs_what_was_on_the_bad_page() {
    let test = TestHome::new();
    let id = fill(&test, &scope("aaaaaaaa"), "claude-1");
    let before = counts(&test);
    ruin(test.memory_connection(), "popup");
    let mut store = test.memory();
    assert_eq!(store.popups().unwrap(), [], "that one was on the bad page");
    settle(&mut store, &HubChanges { shown: vec![popup("k", &id, 7)], ..HubChanges::default() });
    let repair = store.repair().expect("it was noticed");
    assert_eq!(repair.damaged_copy, test.home.path().join("hub.db.damaged-1"));
    assert_eq!(repair.rescued_rows, 1);
    assert_eq!(counts(&test), before, "the popup that was written is the only one");
    assert_eq!(test.open().repair(), None, "the journal was not touched");
}

#[test]
fn a_scope_is_taken_out_with_everything_that_belongs_to_it_and_nothing_else() {
    let test = TestHome::new();
    fill(&test, &scope("bbbbbbbb"), "claude-2");
    let kept = counts(&test);
    fill(&test, &scope("aaaaaaaa"), "claude-1");
    let removed = test.open().remove_scope(&scope("aaaaaaaa")).unwrap();
    assert_eq!(removed.len(), 3);
    test.memory().forget(&removed).unwrap();
    // A flag belongs to a place and a mute to an agent, not to a message.
    let compared = |rows: Vec<(&'static str, i64)>| {
        rows.into_iter().filter(|(table, _)| !["flag", "state"].contains(table)).collect::<Vec<_>>()
    };
    assert_eq!(compared(counts(&test)), compared(kept));
    assert_eq!(undo_items(&mut test.memory()).len(), 1);
    let mut journal = test.open();
    assert!(
        journal.messages_after(0, 10).unwrap().iter().all(|message| message.draft.scope == scope("bbbbbbbb"))
    );
    assert_eq!(
        journal.live_agents(Duration::ZERO, AgentTimeouts::default()).unwrap().agents[0].0.id.as_str(),
        "claude-2"
    );
    assert!(
        journal.lead(&scope("bbbbbbbb")).unwrap().wanted && !journal.lead(&scope("aaaaaaaa")).unwrap().wanted
    );
}
