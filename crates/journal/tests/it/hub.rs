//! What the hub alone does with the journal: its doorbell, and its place in it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use ringer_journal::{Age, Home, HubBell, Journal, Listener, Memory, Parent, Settlement, Taken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::home::{TestHome, append, append_numbers, lead, place};

fn has_rung(bell: &HubBell) -> bool {
    let mut waits = [PollFd::new(bell, PollFlags::IN)];
    poll(&mut waits, Some(&Timespec::default())).expect("polled") == 1
}

#[test]
fn there_is_one_hub_and_it_says_who_it_is() {
    let test = TestHome::new();
    assert_eq!(HubBell::holder(&test.home), None, "none yet");
    let bell = HubBell::hang(&test.home).unwrap().expect("nobody else is the hub");
    assert!(HubBell::hang(&test.home).unwrap().is_none(), "there is one already");
    let holder = HubBell::holder(&test.home).expect("it is alive");
    assert_eq!(holder.pid, std::process::id());
    assert_eq!((holder.consumer.as_str(), holder.scope.as_str()), ("hub", "*"));
    assert!(holder.is_running());
    drop(bell);
    assert_eq!(HubBell::holder(&test.home), None, "it is gone");
    assert!(HubBell::hang(&test.home).unwrap().is_some(), "and the next may be it");
}

const CHILD_HOME: &str = "RINGER_TEST_HUB_HOME";

/// Not a test of its own: the process that the next ones kill.
#[test]
#[ignore = "a helper process of other tests"]
fn a_hub_until_it_is_killed() {
    let path = std::env::var_os(CHILD_HOME).expect("another test says where");
    let bell = HubBell::hang(&Home::new(path)).unwrap().expect("nobody else is the hub");
    println!("\nhung");
    // Its standard input ends when whoever started it does.
    let _ = std::io::stdin().lines().next();
    drop(bell);
}

/// A hub in a process of its own.
fn hub_process(test: &TestHome) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "hub::a_hub_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_HOME, test.home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "hung"), "it hangs its bell");
    child
}

#[test]
fn a_hub_that_was_killed_is_heard_of_no_more_and_the_next_takes_over() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut child = hub_process(&test);
    assert!(HubBell::hang(&test.home).unwrap().is_none(), "another process is the hub");
    assert_eq!(HubBell::holder(&test.home).map(|holder| holder.pid), Some(child.id()));
    append(&mut journal, "heard");
    assert!(journal.hub_heard());
    child.kill().unwrap();
    child.wait().unwrap();
    // Its FIFO and its lock file are still there.
    append(&mut journal, "not heard");
    assert!(!journal.hub_heard(), "somebody has to start one");
    assert_eq!(HubBell::holder(&test.home), None);
    let bell = HubBell::hang(&test.home).unwrap().expect("the dead one is in nobody's way");
    assert!(!has_rung(&bell), "rings of before are not its own");
    append(&mut journal, "heard again");
    assert!(journal.hub_heard() && has_rung(&bell));
}

#[test]
fn every_message_rings_the_hub_until_it_empties_its_bell() {
    let test = TestHome::new();
    let mut journal = test.open();
    assert!(!journal.hub_heard());
    let bell = HubBell::hang(&test.home).unwrap().unwrap();
    append(&mut journal, "one");
    append(&mut journal, "two");
    assert!(has_rung(&bell));
    bell.empty(&test.home).unwrap();
    assert!(!has_rung(&bell));
    // Whoever begins to listen clears away what the dead left: the hub is not dead.
    let mut other = test.open();
    drop(Listener::begin(&mut other, lead(), None, false, Parent::Ignore).unwrap());
    append(&mut journal, "three");
    assert!(journal.hub_heard() && has_rung(&bell));
}

fn take(memory: &mut Memory, journal: &mut Journal, seq: i64) {
    let taken = Some(Taken { cursor: place(journal, seq), catch_up: None });
    memory.settle(&Settlement { taken, ..Settlement::default() }).expect("settled");
}

#[test]
fn the_hub_is_where_its_memory_says() {
    let test = TestHome::new();
    let mut journal = test.open();
    append_numbers(&mut journal, 1..=5);
    let mut memory = test.memory();
    assert_eq!(
        journal.taken_by_hub(Some(&mut memory)).unwrap(),
        Taken { cursor: place(&mut journal, 0), catch_up: None },
        "there was no hub yet"
    );
    take(&mut memory, &mut journal, 5);
    let taken = journal.taken_by_hub(Some(&mut memory)).unwrap();
    assert_eq!(taken, Taken { cursor: place(&mut journal, 5), catch_up: None });
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
    let taken = journal.taken_by_hub(None).unwrap();
    assert_eq!(taken.cursor, place(&mut journal, 0));
    let messages = journal.messages_after(0, 10).unwrap();
    let ages: Vec<Age> = messages.iter().map(|message| taken.age(message)).collect();
    assert_eq!(ages, [Age::Old, Age::Old, Age::Old, Age::Perhaps, Age::Perhaps], "it never goes back");
    test.connection().execute("UPDATE cursor SET id = 'zzz', seq = 77", []).unwrap();
    assert_eq!(journal.taken_by_hub(None).unwrap().catch_up, None, "a damaged place says nothing");
}

#[test]
fn what_no_hub_has_taken_comes_in_order_and_only_the_last_thousand_of_it() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut memory = test.memory();
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1002)
                INSERT INTO message (id, ts, scope, sender, kind, recipient, body)
                SELECT 'm' || i, 0, 'aaaaaaaa', 'system', 'status', 'default', i FROM n";
    test.connection().execute(many, []).unwrap();
    let seqs = |journal: &mut Journal, memory: Option<&mut Memory>| -> Vec<i64> {
        journal.not_taken(memory).unwrap().iter().map(|message| message.seq).collect()
    };
    assert_eq!(seqs(&mut journal, None), (3..=1002).collect::<Vec<_>>());
    take(&mut memory, &mut journal, 1000);
    assert_eq!(seqs(&mut journal, Some(&mut memory)), [1001, 1002]);
}

/// With the log copied, the next writer begins it anew, in the room that the file has already.
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
    // Not begun anew, it would be ten times as long. A message that needs a page of its own makes it a little longer.
    assert!(length() < longest * 2, "it grew from {longest} to {}", length());
    drop((hub, journal));
    assert_eq!(
        crate::home::bodies(&mut test.open()),
        (0..200).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}
