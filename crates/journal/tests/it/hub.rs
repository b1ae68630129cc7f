//! What the hub alone does: its doorbell, what it takes, and what it writes down in one transaction.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use ringer_core::{Kind, MAX_STEPS, MessageId, Place, Record, Step, WorkspaceId};
use ringer_journal::{
    DeadLetter, Home, HubBell, Journal, Listener, Outgoing, Parent, Settlement, ShownPopup,
};
use rusqlite::params;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::home::{TestHome, append, lead};

mod kept;

/// An id, with a message or without.
fn id(number: u64) -> MessageId {
    MessageId::new(number, [0; 10])
}

/// A notification with so many steps behind it.
fn record(id: &MessageId, is_read: bool, steps: std::ops::Range<i64>) -> Record {
    let place = Place::workspace(WorkspaceId::new("w"));
    let mut record = Record::new(id.clone(), place, Kind::Status, "x", 7);
    record.is_read = is_read;
    steps.for_each(|number| record.trail.add(number, format!("step {number}")));
    record
}

fn settle(journal: &mut Journal, settlement: &Settlement) {
    journal.settle(settlement, 1).expect("settled");
}

fn remember(journal: &mut Journal, records: Vec<Record>) {
    settle(journal, &Settlement { records, ..Settlement::default() });
}

fn outgoing(id: &MessageId, way: &str, delivery: &str) -> Outgoing {
    Outgoing { id: id.clone(), way: way.to_owned(), delivery: delivery.to_owned() }
}

fn popup(key: &str, id: &MessageId, number: u32) -> ShownPopup {
    ShownPopup { key: key.to_owned(), id: id.clone(), number, server: "dunst".to_owned() }
}

fn dead(id: &MessageId, unix_ms: i64) -> DeadLetter {
    DeadLetter { id: id.clone(), target: "ntfy".to_owned(), why: "no route".to_owned(), unix_ms }
}

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
    let Some(path) = std::env::var_os(CHILD_HOME) else { return };
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

/// Everything at once, for two messages.
fn everything(one: &MessageId, two: &MessageId) -> Settlement {
    Settlement {
        cursor: Some(2),
        undecided: vec![one.clone()],
        decided: vec![two.clone()],
        records: vec![record(one, false, 0..2)],
        forgotten: vec![two.clone()],
        steps: vec![(two.clone(), Step { unix_ms: 1, text: "a step".to_owned() })],
        outgoing: vec![outgoing(one, "desktop", "{}")],
        settled: vec![(two.clone(), "sound".to_owned())],
        shown: vec![popup("w", one, 1)],
        withdrawn: vec![two.clone()],
        dead: vec![dead(one, 5)],
    }
}

/// Every row of every table that a settlement changes.
fn rows(test: &TestHome) -> Vec<String> {
    let connection = test.connection();
    let mut all = Vec::new();
    for (table, columns) in [
        ("cursor", "consumer, scope, seq"),
        ("undecided", "seq"),
        ("notification", "id, is_read"),
        ("trail", "id, step, text"),
        ("outbox", "id, way"),
        ("popup", "key, id, number, server"),
        ("dead_letter", "id, target, why, ts"),
    ] {
        let query = format!("SELECT '{table}: ' || concat_ws(' ', {columns}) FROM {table} ORDER BY 1");
        let mut statement = connection.prepare(&query).expect("a table");
        let found = statement.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        all.extend(found.map(|row| row.expect("a row")));
    }
    all
}

#[test]
fn a_settlement_is_all_or_nothing() {
    for table in ["cursor", "undecided", "notification", "trail", "outbox", "dead_letter", "popup"] {
        let test = TestHome::new();
        let mut journal = test.open();
        let (one, two) = (append(&mut journal, "one"), append(&mut journal, "two"));
        let before = Settlement {
            undecided: vec![two.clone()],
            records: vec![record(&two, false, 0..1)],
            outgoing: vec![outgoing(&two, "sound", "{}")],
            shown: vec![popup("v", &two, 2)],
            ..Settlement::default()
        };
        settle(&mut journal, &before);
        let written = rows(&test);
        let refuse =
            format!("CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END");
        test.connection().execute_batch(&refuse).unwrap();
        assert!(journal.settle(&everything(&one, &two), 1).is_err(), "{table}");
        assert_eq!(rows(&test), written, "{table} could not be written, and something else was");
        test.connection().execute_batch("DROP TRIGGER no").unwrap();
        settle(&mut journal, &everything(&one, &two));
        assert_eq!(journal.hub_cursor().unwrap(), 2);
        assert!(!rows(&test).iter().any(|row| row.contains("sound") || row.starts_with("popup: v")));
    }
}

#[test]
fn an_empty_settlement_is_known_as_such() {
    assert!(Settlement::default().is_empty());
    assert!(!everything(&id(1), &id(2)).is_empty());
}

#[test]
fn the_hub_never_goes_back() {
    let test = TestHome::new();
    let mut journal = test.open();
    assert_eq!(journal.hub_cursor().unwrap(), 0);
    for (seq, expect) in [(3, 3), (2, 3), (5, 5)] {
        let cursor = Settlement { cursor: Some(seq), ..Settlement::default() };
        journal.settle(&cursor, seq * 10).unwrap();
        assert_eq!(journal.hub_cursor().unwrap(), expect);
    }
    let touched = test.connection().query_row("SELECT touched FROM cursor", [], |row| row.get(0));
    assert_eq!(touched, Ok(50));
}

#[test]
fn what_no_hub_has_taken_comes_in_order_and_only_the_last_thousand_of_it() {
    let test = TestHome::new();
    let mut journal = test.open();
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1002)
                INSERT INTO message (id, ts, scope, sender, kind, recipient, body)
                SELECT 'm' || i, 0, 'aaaaaaaa', 'system', 'status', 'default', i FROM n";
    test.connection().execute(many, []).unwrap();
    let seqs = |journal: &Journal| -> Vec<i64> {
        journal.not_taken().unwrap().iter().map(|message| message.seq).collect()
    };
    assert_eq!(seqs(&journal), (3..=1002).collect::<Vec<_>>());
    settle(&mut journal, &Settlement { cursor: Some(1000), ..Settlement::default() });
    assert_eq!(seqs(&journal), [1001, 1002]);
}

#[test]
fn the_undecided_are_entered_once_and_struck_out_one_by_one() {
    let test = TestHome::new();
    let mut journal = test.open();
    let ids = ["one", "two", "three"].map(|body| append(&mut journal, body));
    let undecided = |ids: &[&MessageId]| Settlement {
        undecided: ids.iter().map(|id| (*id).clone()).collect(),
        ..Settlement::default()
    };
    let left = |journal: &Journal| -> Vec<String> {
        journal.undecided().unwrap().into_iter().map(|message| message.draft.body).collect()
    };
    settle(&mut journal, &undecided(&[&ids[2], &ids[0]]));
    settle(&mut journal, &undecided(&[&ids[0], &ids[1], &id(9)]));
    assert_eq!(left(&journal), ["one", "two", "three"]);
    settle(&mut journal, &Settlement { decided: vec![ids[1].clone(), id(9)], ..Settlement::default() });
    assert_eq!(left(&journal), ["one", "three"]);
}

#[test]
fn a_notification_comes_back_as_it_last_was_with_its_whole_trail() {
    let test = TestHome::new();
    let mut journal = test.open();
    let message = append(&mut journal, "one");
    let first = record(&message, false, 0..3);
    remember(&mut journal, vec![first.clone()]);
    assert_eq!(journal.notification(message.as_str()).unwrap(), Some(first));
    let mut changed = record(&message, true, 0..5);
    changed.body = "richer".to_owned();
    remember(&mut journal, vec![changed.clone(), changed.clone()]);
    assert_eq!(journal.notification(message.as_str()).unwrap(), Some(changed.clone()));
    assert_eq!(journal.trail(message.as_str()).unwrap(), changed.trail);
    assert_eq!(journal.remembered(1).unwrap(), [changed], "it counts as read now");
    assert_eq!(journal.remembered(0).unwrap(), []);
    assert_eq!(journal.notification("nobody").unwrap(), None);
}

#[test]
fn a_long_trail_is_written_as_it_is_kept() {
    let test = TestHome::new();
    let mut journal = test.open();
    let most = i64::try_from(MAX_STEPS).unwrap();
    // Up to the brim, over it by one, and far over it; each goes on from the one before.
    for steps in [most - 1, most, most + 1, most + 40] {
        let record = record(&id(1), false, 0..steps);
        remember(&mut journal, vec![record.clone()]);
        assert_eq!(journal.notification(id(1).as_str()).unwrap(), Some(record), "{steps} steps");
        let rows: i64 =
            test.connection().query_row("SELECT count(*) FROM trail", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, steps.min(most));
    }
}

#[test]
fn steps_of_what_is_no_notification_follow_each_other_and_end_at_the_cap() {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..70 {
        let step = Step { unix_ms: number, text: format!("step {number}") };
        let other = Step { unix_ms: 0, text: "other".to_owned() };
        let mut steps = vec![(id(1), step)];
        steps.extend((number == 0).then(|| (id(2), other)));
        settle(&mut journal, &Settlement { steps, ..Settlement::default() });
    }
    let trail = journal.trail(id(1).as_str()).unwrap();
    assert_eq!(trail.steps().map(|step| step.unix_ms).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    assert_eq!(journal.trail(id(2).as_str()).unwrap().steps().len(), 1);
}

#[test]
fn what_is_off_the_list_can_still_be_asked_about() {
    let test = TestHome::new();
    let mut journal = test.open();
    remember(&mut journal, vec![record(&id(1), false, 0..2), record(&id(2), false, 0..1)]);
    settle(&mut journal, &Settlement { forgotten: vec![id(1)], ..Settlement::default() });
    assert_eq!(journal.notification(id(1).as_str()).unwrap(), None);
    assert_eq!(journal.trail(id(1).as_str()).unwrap().steps().len(), 2);
    assert!(journal.notification(id(2).as_str()).unwrap().is_some());
}

#[test]
fn all_unread_and_the_newest_of_the_read_are_remembered_oldest_first() {
    let test = TestHome::new();
    let mut journal = test.open();
    let ids: Vec<MessageId> = (0..6).map(|number| append(&mut journal, &number.to_string())).collect();
    let read = [true, false, true, true, false, true];
    // Written in another order than they were sent.
    let records: Vec<Record> = (0..6).rev().map(|at| record(&ids[at], read[at], 0..2)).collect();
    remember(&mut journal, records);
    let check = |most_read: usize, expect: &[usize]| {
        let found = journal.remembered(most_read).unwrap();
        let at = |record: &Record| ids.iter().position(|id| *id == record.id).unwrap();
        assert_eq!(found.iter().map(at).collect::<Vec<_>>(), expect, "{most_read} read ones");
        assert!(found.iter().all(|record| record.trail.steps().len() == 2));
    };
    check(0, &[1, 4]);
    check(2, &[1, 3, 4, 5]);
    check(usize::MAX, &[0, 1, 2, 3, 4, 5]);
    let damage = "UPDATE notification SET record = 'dance' WHERE id = ?1";
    assert_eq!(test.connection().execute(damage, [ids[1].as_str()]), Ok(1));
    check(0, &[4]);
    assert_eq!(journal.notification(ids[1].as_str()).unwrap(), None);
}

#[test]
fn a_delivery_is_under_way_until_that_way_is_settled_or_the_whole_is_withdrawn() {
    let test = TestHome::new();
    let mut journal = test.open();
    let all = [
        outgoing(&id(1), "desktop", "old"),
        outgoing(&id(1), "sound", "s"),
        outgoing(&id(2), "desktop", "d"),
        outgoing(&id(2), "sound", "t"),
    ];
    settle(&mut journal, &Settlement { outgoing: all.to_vec(), ..Settlement::default() });
    let again = outgoing(&id(1), "desktop", "new");
    settle(&mut journal, &Settlement { outgoing: vec![again.clone()], ..Settlement::default() });
    assert_eq!(journal.outbox().unwrap(), [again.clone(), all[1].clone(), all[2].clone(), all[3].clone()]);
    let settled = vec![(id(2), "sound".to_owned()), (id(3), "desktop".to_owned())];
    settle(&mut journal, &Settlement { settled, ..Settlement::default() });
    assert_eq!(journal.outbox().unwrap(), [again, all[1].clone(), all[2].clone()]);
    settle(&mut journal, &Settlement { withdrawn: vec![id(1)], ..Settlement::default() });
    assert_eq!(journal.outbox().unwrap(), [all[2].clone()]);
}

#[test]
fn a_popup_takes_the_place_of_the_last_one_of_its_key_and_is_forgotten_when_withdrawn() {
    let test = TestHome::new();
    let mut journal = test.open();
    let shown = vec![popup("a", &id(1), 1), popup("b", &id(2), 2), popup("a", &id(3), 3)];
    settle(&mut journal, &Settlement { shown, ..Settlement::default() });
    assert_eq!(journal.popups().unwrap(), [popup("a", &id(3), 3), popup("b", &id(2), 2)]);
    settle(&mut journal, &Settlement { withdrawn: vec![id(1), id(2)], ..Settlement::default() });
    assert_eq!(journal.popups().unwrap(), [popup("a", &id(3), 3)]);
}

#[test]
fn of_the_dead_letters_the_last_hundred_are_kept_newest_first() {
    let test = TestHome::new();
    let mut journal = test.open();
    let letters: Vec<DeadLetter> = (0..103).map(|number| dead(&id(1), number)).collect();
    settle(&mut journal, &Settlement { dead: letters[..60].to_vec(), ..Settlement::default() });
    settle(&mut journal, &Settlement { dead: letters[60..].to_vec(), ..Settlement::default() });
    let expect: Vec<DeadLetter> = letters[3..].iter().rev().cloned().collect();
    assert_eq!(journal.dead_letters().unwrap(), expect);
}

#[test]
fn rows_of_no_id_are_passed_over() {
    let test = TestHome::new();
    let journal = test.open();
    let connection = test.connection();
    for change in [
        "INSERT INTO outbox VALUES (?1, 'desktop', '{}')",
        "INSERT INTO popup VALUES ('k', ?1, 1, 's')",
        "INSERT INTO dead_letter (id, target, why, ts) VALUES (?1, 't', 'w', 1)",
    ] {
        connection.execute(change, params!["two\nlines"]).unwrap();
    }
    assert!(journal.outbox().unwrap().is_empty());
    assert!(journal.popups().unwrap().is_empty());
    assert!(journal.dead_letters().unwrap().is_empty());
}
