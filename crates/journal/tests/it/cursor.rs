//! A place in the journal: is it still one, after the file was removed, damaged, or replaced by another?

use std::fs;
use std::time::{Duration, Instant};

use ringer_journal::{Age, Filter, Journal, JournalFollower, OnParentExit, ReadPosition};

use crate::home::{TestHome, append, append_numbers, bodies, heard, lead, place, read_to};

/// A journal of so many messages, whose texts are their numbers.
fn journal_of(messages: i64) -> (TestHome, Journal) {
    let test = TestHome::new();
    let mut journal = test.open();
    append_numbers(&mut journal, 1..=messages);
    (test, journal)
}

/// Removes the journal's files.
fn remove(test: &TestHome) {
    for name in test.files("ringer.db") {
        fs::remove_file(test.home.path().join(name)).expect("removed");
    }
}

/// Puts a copy that was made before in the journal's place.
fn restore(test: &TestHome, copy: &[u8]) {
    remove(test);
    fs::write(test.home.database(), copy).expect("written");
}

fn copy(test: &TestHome) -> Vec<u8> {
    test.flatten();
    fs::read(test.home.database()).expect("a database")
}

/// Where a reader resumes that was behind the fifth message, and what it finds there: `=` for a message that is new to
/// him, `?` for one that may be, `<` for one of before.
#[track_caller]
fn check(what: &str, exchange: impl Fn(&TestHome, &[u8]), expect: (i64, &str)) {
    let (test, mut journal) = journal_of(3);
    drop(journal);
    let older = copy(&test);
    journal = test.open();
    append_numbers(&mut journal, 4..=5);
    let taken = ReadPosition { cursor: place(&mut journal, 5), catch_up: None };
    drop(journal);
    exchange(&test, &older);
    let mut journal = test.open();
    let here = journal.resume_at(&taken).expect("readable");
    let messages = journal.messages_after(here.cursor.seq, 100).expect("readable");
    let ages: String = messages
        .iter()
        .map(|message| match here.age(message) {
            Age::New => '=',
            Age::MaybeSeen => '?',
            Age::Old => '<',
        })
        .collect();
    assert_eq!((here.cursor.seq, ages.as_str()), expect, "{what}");
    assert_eq!(here.cursor.generation, Some(journal.generation().expect("readable")), "{what}");
    assert_eq!(journal.resume_at(&here).expect("readable"), here, "{what}: it starts over once");
}

fn append_to(test: &TestHome, body: &str) {
    append(&mut test.open(), body);
}

#[test]
fn one_goes_on_where_one_was_in_the_same_journal() {
    check("nothing happened", |_, _| {}, (5, ""));
    check("another message came", |test, _| append_to(test, "6"), (5, "="));
    let delete = |test: &TestHome, which: &str| {
        test.connection().execute(&format!("DELETE FROM message WHERE {which}"), []).unwrap();
    };
    check("the last message was pruned", |test, _| delete(test, "seq = 5"), (5, ""));
    check(
        "all were pruned, and one came",
        |test, _| {
            delete(test, "true");
            append_to(test, "6");
        },
        (5, "="),
    );
}

#[test]
fn one_starts_over_in_another_journal() {
    let removed = |test: &TestHome, _: &[u8]| {
        remove(test);
        append_to(test, "new");
    };
    check("removed, and one came", removed, (0, "?"));
    let grown = |test: &TestHome, older: &[u8]| {
        removed(test, older);
        (2..9).for_each(|number| append_to(test, &number.to_string()));
    };
    check("removed, and more came than there were", grown, (0, "????????"));
    let restored = |test: &TestHome, older: &[u8]| restore(test, older);
    check("an older copy was put back", restored, (0, "<<<"));
    let and_grown = |test: &TestHome, older: &[u8]| {
        restore(test, older);
        (4..7).for_each(|number| append_to(test, &number.to_string()));
    };
    check("an older copy was put back, and grew past the place", and_grown, (0, "<<<???"));
}

#[test]
fn what_comes_after_the_exchange_was_noticed_is_new() {
    let (test, mut journal) = journal_of(5);
    let mut taken = ReadPosition { cursor: place(&mut journal, 5), catch_up: None };
    drop(journal);
    remove(&test);
    let mut journal = test.open();
    append(&mut journal, "in between");
    taken = journal.resume_at(&taken).unwrap();
    append(&mut journal, "after");
    let messages = journal.messages_after(0, 10).unwrap();
    assert_eq!(
        messages.iter().map(|message| taken.age(message)).collect::<Vec<_>>(),
        [Age::MaybeSeen, Age::New]
    );
    taken.advance(messages[0].seq, &messages[0].id);
    assert_eq!(taken.catch_up, None, "it has caught up");
    // Exchanged again, before anything came: what was taken before that still counts.
    drop(journal);
    remove(&test);
    let empty = test.open().resume_at(&taken).unwrap();
    remove(&test);
    append_to(&test, "later");
    let again = test.open().resume_at(&empty).unwrap();
    assert_eq!(again.catch_up.unwrap().newest, messages[0].id.as_str());
}

/// A reader inside the file: its row may be damaged, or the message that it names.
#[test]
fn a_damaged_cursor_skips_nothing() {
    for (damage, expect) in [
        ("UPDATE cursor SET seq = 4000000000", &["3", "4"][..]),
        ("UPDATE cursor SET seq = 3", &["3", "4"]),
        ("UPDATE cursor SET seq = 3, id = 'x'", &["1", "2", "3", "4"]),
        ("UPDATE cursor SET id = 'x'", &["1", "2", "3", "4"]),
        ("UPDATE cursor SET id = CAST(x'ff' AS TEXT)", &["1", "2", "3", "4"]),
        ("UPDATE cursor SET seq = -4", &["1", "2", "3", "4"]),
        ("UPDATE message SET id = 'x' WHERE seq = 2", &["1", "2", "3", "4"]),
        ("DELETE FROM message WHERE seq = 2", &["3", "4"]),
        ("DELETE FROM sqlite_sequence", &["3", "4"]),
    ] {
        let (test, mut journal) = journal_of(4);
        read_to(&mut journal, &lead(), 2, 0);
        test.connection().execute(damage, []).unwrap();
        assert_eq!(heard(&mut journal, lead(), 10), expect, "{damage}");
        append(&mut journal, "5");
        assert_eq!(heard(&mut journal, lead(), 10), ["5"], "{damage}: once");
    }
}

/// Read from one journal and printed, and then another one was in its place.
#[test]
fn a_cursor_is_not_moved_in_a_journal_that_has_no_such_message() {
    let (test, mut journal) = journal_of(3);
    let last = journal.messages_after(2, 1).unwrap().remove(0);
    remove(&test);
    for number in 1..=5 {
        append_to(&test, &format!("new {number}"));
    }
    journal.advance(&lead(), (last.seq, &last.id), 0).unwrap();
    assert_eq!(heard(&mut journal, lead(), 10).len(), 5);
}

#[test]
fn who_follows_sees_what_comes_after_the_exchange_and_nothing_twice() {
    for restores in [false, true] {
        let (test, journal) = journal_of(3);
        drop(journal);
        let older = copy(&test);
        let mut journal = test.open();
        append_numbers(&mut journal, 4..=4);
        let last = journal.messages_after(3, 1).unwrap().pop();
        let mut watch = JournalFollower::begin(&mut journal, last.as_ref(), OnParentExit::Continue).unwrap();
        if restores {
            restore(&test, &older);
        } else {
            remove(&test);
        }
        append_to(&test, "new");
        let deadline = Some(Instant::now() + Duration::from_secs(30));
        let messages = watch.next(&Filter::default(), deadline, 10).unwrap();
        let seen: Vec<&str> = messages.iter().map(|message| message.draft.body.as_str()).collect();
        assert_eq!(seen, ["new"], "an older copy: {restores}");
        drop(watch);
        assert_eq!(bodies(&mut journal).len(), if restores { 4 } else { 1 });
    }
}

#[test]
fn a_repair_keeps_the_places() {
    let (test, mut journal) = journal_of(5);
    let taken = ReadPosition { cursor: place(&mut journal, 4), catch_up: None };
    read_to(&mut journal, &lead(), 4, 0);
    drop(journal);
    test.flatten();
    // A page that nothing but the search by scope needs.
    let root: i64 = test
        .connection()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'message_scope'", [], |row| row.get(0))
        .unwrap();
    let (mut bytes, root) = (fs::read(test.home.database()).unwrap(), usize::try_from(root).unwrap());
    bytes[(root - 1) * 4096..root * 4096].fill(0xff);
    fs::write(test.home.database(), bytes).unwrap();
    let mut journal = test.open();
    assert_eq!(heard(&mut journal, lead(), 10), ["5"]);
    assert!(journal.repair().is_some(), "it was noticed");
    assert_eq!(journal.resume_at(&taken).unwrap(), taken);
}
