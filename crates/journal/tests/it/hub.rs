//! The hub's access to the journal: its lock and doorbell, and its read position.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use ringer_journal::{
    Age, Home, HubChanges, HubLock, HubStore, Journal, Listener, OnParentExit, ReadPosition,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::home::{TestHome, append, append_numbers, lead, place};

fn has_rung(bell: &HubLock) -> bool {
    let mut waits = [PollFd::new(bell, PollFlags::IN)];
    poll(&mut waits, Some(&Timespec::default())).expect("polled") == 1
}

#[test]
fn there_is_one_hub_and_it_says_who_it_is() {
    let test = TestHome::new();
    assert_eq!(HubLock::owner(&test.home), None, "none yet");
    let bell = HubLock::acquire(&test.home).unwrap().expect("no other process is the hub");
    assert!(HubLock::acquire(&test.home).unwrap().is_none(), "there is one already");
    let holder = HubLock::owner(&test.home).expect("it is alive");
    assert_eq!(holder.pid, std::process::id());
    assert_eq!((holder.consumer.as_str(), holder.scope.as_str()), ("hub", "*"));
    assert!(holder.is_running());
    drop(bell);
    assert_eq!(HubLock::owner(&test.home), None, "it is gone");
    assert!(HubLock::acquire(&test.home).unwrap().is_some(), "and the next may be it");
}

const CHILD_HOME: &str = "RINGER_TEST_HUB_HOME";

/// Not a test: the process that the following tests kill.
#[test]
#[ignore = "a helper process of other tests"]
fn a_hub_until_it_is_killed() {
    let path = std::env::var_os(CHILD_HOME).expect("another test says where");
    let bell = HubLock::acquire(&Home::new(path)).unwrap().expect("no other process is the hub");
    println!("\nready");
    // Its standard input is closed when its parent exits.
    let _ = std::io::stdin().lines().next();
    drop(bell);
}

/// A hub in a separate process.
fn hub_process(test: &TestHome) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "hub::a_hub_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_HOME, test.home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "it has the lock");
    child
}

#[test]
fn a_hub_that_was_killed_is_heard_of_no_more_and_the_next_takes_over() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut child = hub_process(&test);
    assert!(HubLock::acquire(&test.home).unwrap().is_none(), "another process is the hub");
    assert_eq!(HubLock::owner(&test.home).map(|holder| holder.pid), Some(child.id()));
    append(&mut journal, "heard");
    assert!(journal.hub_was_woken());
    child.kill().unwrap();
    child.wait().unwrap();
    // Its FIFO and its lock file still exist.
    append(&mut journal, "not heard");
    assert!(!journal.hub_was_woken(), "the caller has to start one");
    assert_eq!(HubLock::owner(&test.home), None);
    let bell = HubLock::acquire(&test.home).unwrap().expect("a dead hub holds no lock");
    assert!(!has_rung(&bell), "rings of before are not its own");
    append(&mut journal, "heard again");
    assert!(journal.hub_was_woken() && has_rung(&bell));
}

#[test]
fn every_message_rings_the_hub_until_it_empties_its_bell() {
    let test = TestHome::new();
    let mut journal = test.open();
    assert!(!journal.hub_was_woken());
    let bell = HubLock::acquire(&test.home).unwrap().unwrap();
    append(&mut journal, "one");
    append(&mut journal, "two");
    assert!(has_rung(&bell));
    bell.drain(&test.home).unwrap();
    assert!(!has_rung(&bell));
    // A new listener removes the doorbells of dead processes: the hub is alive.
    let mut other = test.open();
    drop(Listener::begin(&mut other, lead(), None, false, OnParentExit::Continue).unwrap());
    append(&mut journal, "three");
    assert!(journal.hub_was_woken() && has_rung(&bell));
}

fn take(store: &mut HubStore, journal: &mut Journal, seq: i64) {
    let taken = Some(ReadPosition { cursor: place(journal, seq), catch_up: None });
    store.commit(&HubChanges { position: taken, ..HubChanges::default() }).expect("settled");
}

#[test]
fn the_hub_is_where_its_memory_says() {
    let test = TestHome::new();
    let mut journal = test.open();
    append_numbers(&mut journal, 1..=5);
    let mut store = test.memory();
    assert_eq!(
        journal.hub_position(Some(&mut store)).unwrap(),
        ReadPosition { cursor: place(&mut journal, 0), catch_up: None },
        "there was no hub yet"
    );
    take(&mut store, &mut journal, 5);
    let taken = journal.hub_position(Some(&mut store)).unwrap();
    assert_eq!(taken, ReadPosition { cursor: place(&mut journal, 5), catch_up: None });
}

#[test]
fn without_its_memory_the_hub_reads_again_and_knows_what_is_not_new() {
    let test = TestHome::new();
    let mut journal = test.open();
    append_numbers(&mut journal, 1..=5);
    for seq in [3, 2] {
        let here = place(&mut journal, seq);
        journal.advance_hub(&here, seq * 10).unwrap();
    }
    let touched = test.connection().query_row("SELECT touched FROM cursor", [], |row| row.get(0));
    assert_eq!(touched, Ok(20));
    let taken = journal.hub_position(None).unwrap();
    assert_eq!(taken.cursor, place(&mut journal, 0));
    let messages = journal.messages_after(0, 10).unwrap();
    let ages: Vec<Age> = messages.iter().map(|message| taken.age(message)).collect();
    assert_eq!(ages, [Age::Old, Age::Old, Age::Old, Age::MaybeSeen, Age::MaybeSeen], "it never goes back");
    test.connection().execute("UPDATE cursor SET id = 'zzz', seq = 77", []).unwrap();
    assert_eq!(journal.hub_position(None).unwrap().catch_up, None, "a damaged place says nothing");
}

/// After a checkpoint, the next writer restarts the WAL in the existing file.
#[test]
fn a_log_that_was_copied_is_begun_anew_and_nothing_is_lost() {
    let test = TestHome::new();
    let mut hub = test.open();
    let mut journal = test.open();
    let length = || std::fs::metadata(test.home.path().join("ringer.db-wal")).unwrap().len();
    let mut longest = 0;
    for number in 0..200 {
        append(&mut journal, &number.to_string());
        if number % 10 == 9 {
            hub.checkpoint().unwrap();
        }
        if number == 20 {
            longest = length();
        }
    }
    // Without the restart it would be ten times as long. A message that needs a new page makes it a little longer.
    assert!(length() < longest * 2, "it grew from {longest} to {}", length());
    drop((hub, journal));
    assert_eq!(
        crate::home::bodies(&mut test.open()),
        (0..200).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}
