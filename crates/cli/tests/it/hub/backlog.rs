//! A hub that finds many messages in the journal: it answers while it reads them, and ends when it is told to.

use std::collections::BTreeSet;

use ringer_journal::{Home, HubStore, Journal};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use test_support::until;

use super::environment::{HubEnvironment, kill, runs};
use crate::ringer::check;

/// As many as took a hub six seconds to read, built for release.
const MANY: u32 = 100_000;

/// Writes so many messages at once; one by one would take minutes.
fn fill(environment: &HubEnvironment, count: u32) {
    let mut first = environment.ringer(&["notify", "number 0"]);
    check(first.env("RINGER_HUB", "off"), 0);
    let journal = Connection::open(environment.base.database()).expect("a journal");
    let inserted = journal.execute(
        "WITH RECURSIVE counted(number) AS
             (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < ?1)
         INSERT INTO message (id, ts, scope, sender, kind, recipient, body)
         SELECT printf('01997a3e-0a1b-7c2d-8e3f-%012d', number), ts, scope, sender, kind, recipient,
                'number ' || number
         FROM message, counted WHERE seq = 1",
        [count - 1],
    );
    assert_eq!(inserted.expect("they are inserted"), count as usize - 1);
}

/// Starts a hub, and does not wait until it has read the journal.
fn begin(environment: &HubEnvironment) -> u32 {
    check(&mut environment.ringer(&["hub", "start"]), 0);
    let pid = environment.presence().expect("a hub")["pid"].as_u64().expect("a number");
    u32::try_from(pid).expect("a pid")
}

/// How far hubs have come.
fn cursor(environment: &HubEnvironment) -> i64 {
    let home = Home::new(environment.base.home());
    let taken = HubStore::open(&home).expect("a hub store").position().expect("it can be read");
    taken.map_or(0, |taken| taken.cursor.seq)
}

#[test]
fn requests_are_answered_and_the_hub_ends_while_it_reads_a_long_backlog() {
    let environment = HubEnvironment::in_memory();
    fill(&environment, MANY);
    let first = begin(&environment);
    let mut socket = environment.connect();
    let answer = socket.call("notification.list", &json!({ "limit": 5 }));
    let behind = answer["behind"].as_u64().expect("it has not read everything");
    assert!(behind > 0 && behind < u64::from(MANY), "{answer}");
    assert_eq!(answer["ok"], true);

    // What is written meanwhile is kept, and what it is about need not have been read yet.
    let last = format!("01997a3e-0a1b-7c2d-8e3f-{:012}", MANY - 1);
    let marked = socket.call("notification.mark_read", &json!({ "id": last }));
    assert!(marked["ok"] == true && marked["behind"].as_u64() > Some(0), "{marked}");
    let opened = socket.call("notification.open", &json!({ "id": last }));
    assert_eq!(opened["error"]["code"], "busy", "{opened}");

    let (_, told) = check(&mut environment.ringer(&["list"]), 0);
    assert!(told.contains("the hub is still processing") && told.contains("older messages"), "{told}");
    let status = environment.run(&["status"]);
    assert!(status.contains(&format!("pid {first}, still processing")), "{status}");
    assert!(environment.run(&["hub", "status"]).contains("messages not processed yet"));

    // Told to end by a signal, and by a request: each time in the middle.
    kill_process(Pid::from_raw(first.cast_signed()).expect("a pid"), Signal::TERM).expect("it runs");
    until("it ends", || !runs(first));
    let after_first = cursor(&environment);
    assert!(after_first > 0 && after_first < i64::from(MANY), "it ended at {after_first}");
    let second = begin(&environment);
    check(&mut environment.ringer(&["hub", "stop"]), 0);
    until("it is gone", || !runs(second));
    let after_second = cursor(&environment);
    assert!((after_first..i64::from(MANY)).contains(&after_second), "from {after_first} to {after_second}");
    assert!(
        environment.log().lines().filter(|line| line.ends_with("the hub ends")).count() == 2,
        "{}",
        environment.log()
    );
}

#[test]
fn ends_in_the_middle_of_a_backlog_lose_and_double_nothing() {
    const COUNT: u32 = 3_000;
    let environment = HubEnvironment::in_memory();
    fill(&environment, COUNT);
    let last =
        Journal::open(&Home::new(environment.base.home())).expect("a journal").last_seq().expect("one");
    let mut before = -1;
    // Every other one is killed.
    for turn in 0.. {
        let hub = begin(&environment);
        until("it has read a batch", || cursor(&environment) > before);
        if turn % 2 == 0 {
            check(&mut environment.ringer(&["hub", "stop"]), 0);
        } else {
            kill(hub);
        }
        before = cursor(&environment);
        if before == last {
            break;
        }
    }
    let store = HubStore::open_to_read(&Home::new(environment.base.home())).expect("a readable store");
    let rows = store.expect("a store").notifications(usize::MAX).expect("notifications").records;
    let bodies: BTreeSet<&str> = rows.iter().map(|row| &*row.body).collect();
    assert_eq!((rows.len(), bodies.len()), (COUNT as usize, COUNT as usize));
}
