//! Damage of the hub's own file and of the journal: the hub runs all the same, keeps what it can, and tells of it once.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ringer_journal::{HubStore, Journal};
use rusqlite::Connection;
use serde_json::json;
use test_support::until;

use crate::hub::TestHub;

/// The titles and texts of what is listed, newest first.
fn listed(hub: &TestHub) -> Vec<(String, String)> {
    let list = hub.call("notification.list", &json!({ "limit": 1000 }));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    list.as_array().expect("a list").iter().map(|one| (text(&one["title"]), text(&one["body"]))).collect()
}

fn bodies(hub: &TestHub) -> Vec<String> {
    listed(hub).into_iter().filter(|(title, _)| title.is_empty()).map(|(_, body)| body).collect()
}

/// What Ringer told of itself.
fn told(hub: &TestHub) -> Vec<String> {
    let own = listed(hub).into_iter().filter(|(title, _)| title.starts_with("Ringer: "));
    own.map(|(title, body)| format!("{title}. {body}")).collect()
}

#[track_caller]
fn wait_until_told(hub: &TestHub, words: &str) {
    until(&format!("told: {words}"), || told(hub).iter().any(|told| told.contains(words)));
}

fn file(hub: &TestHub, name: &str) -> PathBuf {
    hub.home().path().join(name)
}

/// Writes into the very file that a hub may have open.
fn overwrite(hub: &TestHub, name: &str, byte: u8) {
    let file = OpenOptions::new().write(true).open(file(hub, name)).expect("a file");
    let length = file.metadata().expect("a length").len();
    file.write_all_at(&vec![byte; length.try_into().expect("small")], 0).expect("written");
}

fn hub_with(messages: &[&str]) -> TestHub {
    let hub = TestHub::start("");
    for body in messages {
        hub.send(body);
    }
    until("all are taken", || bodies(&hub).len() == messages.len());
    hub
}

/// Twenty random bytes kept every hub from starting, for ever: one bad byte is enough for that.
#[test]
fn one_bad_byte_keeps_no_hub_from_starting() {
    let tables = "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
                  WHERE tables.type = 'table' AND columns.type = 'TEXT'";
    let mut hub = hub_with(&["one", "two"]);
    hub.end();
    let memory = Connection::open(file(&hub, "hub.db")).expect("a database");
    let columns: Vec<(String, String)> = memory
        .prepare(tables)
        .expect("tables")
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("columns")
        .map(|column| column.expect("a column"))
        .collect();
    for (table, column) in &columns {
        let damage = format!("UPDATE {table} SET {column} = CAST(CAST({column} AS BLOB) || x'ff' AS TEXT)");
        memory.execute(&damage, []).expect("written");
    }
    drop(memory);
    hub.begin();
    let after = hub.send("after");
    hub.wait_for_step(&after, "channels: ");
    let bodies = bodies(&hub);
    assert!(["one", "two", "after"].iter().all(|body| bodies.iter().any(|own| own == body)), "{bodies:?}");
}

#[test]
fn a_notification_that_cannot_be_read_is_made_again_from_its_message_and_told_of_once() {
    let mut hub = hub_with(&["one", "two", "three"]);
    hub.end();
    let memory = Connection::open(file(&hub, "hub.db")).expect("a database");
    memory.execute("UPDATE notification SET record = 'damaged' WHERE number = 2", []).expect("written");
    drop(memory);
    for _ in 0..3 {
        hub.begin();
        wait_until_told(&hub, "1 notification could not be read");
        let mut bodies = bodies(&hub);
        bodies.sort();
        assert_eq!((bodies, told(&hub).len()), (vec!["one".into(), "three".into(), "two".into()], 1));
        hub.end();
    }
}

#[test]
fn a_damaged_memory_is_told_of_once() {
    let mut hub = hub_with(&["one"]);
    hub.end();
    overwrite(&hub, "hub.db", 0x5a);
    fs::write(file(&hub, "hub.db-wal"), "").expect("written");
    for number in 0..3 {
        hub.begin();
        wait_until_told(&hub, "the list of notifications was damaged");
        wait_until_told(&hub, "hub.db.damaged-1");
        assert_eq!(told(&hub).len(), 1, "begun {number} times before");
        hub.end();
    }
    let log = fs::read_to_string(file(&hub, "hub.log")).expect("a log");
    assert_eq!(log.matches("the list of notifications was damaged").count(), 1, "{log}");
}

/// The hub that meets the damage ends, and the next one repairs the file. The list can be made again from the journal.
#[test]
fn a_memory_that_is_damaged_under_its_hub_loses_no_notification() {
    let mut hub = hub_with(&["one", "two"]);
    for name in ["hub.db", "hub.db-wal"] {
        overwrite(&hub, name, 0);
    }
    hub.send("after");
    let met = HubStore::open(hub.home());
    assert!(
        met.is_err_and(|error| error.is_corruption()),
        "who reads it meets the damage too, and wakes the hub"
    );
    hub.wait_for_end();
    hub.send("later");
    hub.begin();
    wait_until_told(&hub, "the list of notifications was damaged");
    let mut bodies = bodies(&hub);
    bodies.sort();
    assert_eq!((bodies, told(&hub).len()), (["after", "later", "one", "two"].map(str::to_owned).to_vec(), 1));
}

/// Found by a process that says nothing, as a hook does: a hub that runs ends.
#[test]
fn a_damaged_journal_is_reported_once_whichever_process_found_it() {
    for runs in [true, false] {
        let mut hub = hub_with(&["one"]);
        if !runs {
            hub.end();
        }
        overwrite(&hub, "ringer.db", 0x5a);
        fs::write(file(&hub, "ringer.db-wal"), "").expect("written");
        let found = Journal::open(hub.home());
        assert!(found.is_err_and(|error| error.is_corruption()), "nobody but a hub that starts repairs");
        hub.wait_for_end();
        hub.begin();
        wait_until_told(&hub, "the journal was damaged");
        hub.send("again");
        hub.end();
        hub.begin();
        let told = told(&hub);
        assert!(told.len() == 1 && told[0].contains("ringer.db.damaged-1"), "running: {runs}: {told:?}");
    }
}

#[test]
fn a_message_that_cannot_be_read_is_told_of_and_the_next_ones_come() {
    let mut hub = hub_with(&["one"]);
    hub.end();
    for body in ["two", "three"] {
        hub.send(body);
    }
    let journal = Connection::open(file(&hub, "ringer.db")).expect("a database");
    journal.execute("UPDATE message SET id = '' WHERE body = 'two'", []).expect("written");
    drop(journal);
    hub.begin();
    wait_until_told(&hub, "1 message could not be read");
    assert_eq!(bodies(&hub), ["three", "one"]);
    assert_eq!(told(&hub).len(), 1);
}
