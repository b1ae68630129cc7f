//! A damaged database: what is saved, and what happens when even the repair is cut off.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_journal::{Journal, Listener, OnParentExit};

use crate::home::{TestHome, append, bodies, heard, lead, next, read_to};

const PAGE: usize = 4096;

/// A journal of so many messages in one file.
fn journal_of(messages: u32) -> TestHome {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..messages {
        append(&mut journal, &format!("{number} {}", "x".repeat(500)));
    }
    drop(journal);
    test.flatten();
    test
}

fn numbers(journal: &mut Journal) -> Vec<u32> {
    bodies(journal)
        .iter()
        .map(|body| body.split(' ').next().expect("a word").parse().expect("a number"))
        .collect()
}

/// The page at which a table begins.
fn root(test: &TestHome, table: &str) -> usize {
    let query = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: i64 = test.connection().query_row(query, [table], |row| row.get(0)).expect("a table");
    usize::try_from(root).expect("small")
}

/// Overwrites a page, the first of which has number 1.
fn zero(path: &Path, page: usize) {
    let mut bytes = fs::read(path).expect("a database");
    bytes[(page - 1) * PAGE..page * PAGE].fill(0);
    fs::write(path, bytes).expect("written");
}

fn fresh(test: &TestHome) -> PathBuf {
    test.home.path().join("ringer.db.fresh")
}

/// Reads everything, and lets it be repaired on the way.
fn read_all(test: &TestHome) -> Journal {
    let mut journal = test.open();
    journal.messages_after(0, usize::MAX).expect("it heals");
    journal
}

#[test]
fn one_bad_page_costs_only_itself() {
    let test = journal_of(100);
    let pages = fs::read(test.home.database()).unwrap().len() / PAGE;
    let before = fs::read(test.home.database()).unwrap();
    let root = root(&test, "message");
    let mut damaged = 0;
    // Whatever page it is: root, leaf, index or free.
    for page in 2..=pages {
        fs::write(test.home.database(), &before).unwrap();
        zero(&test.home.database(), page);
        let mut journal = read_all(&test);
        let saved = numbers(&mut journal);
        assert!(saved.is_sorted() && saved.last().is_none_or(|last| *last < 100), "page {page}: {saved:?}");
        if page != root {
            assert!(saved.len() >= 80, "page {page} cost {} messages", 100 - saved.len());
        }
        damaged += usize::from(journal.repair().is_some());
        append(&mut journal, "100 after");
        assert!(journal.last_seq().unwrap() > 100, "page {page}: a number was given twice");
        assert_eq!(
            heard(&mut journal, lead(), 1000).last().map(String::as_str),
            Some("100 after"),
            "page {page}"
        );
        drop(journal);
        for name in test.files("ringer.db-").into_iter().chain(test.files("ringer.db.")) {
            fs::remove_file(test.home.path().join(name)).unwrap();
        }
    }
    // The rest are of tables that nothing here reads.
    assert!(damaged > pages / 3, "only {damaged} of {pages} were noticed");
}

#[test]
fn numbers_go_on_where_the_damaged_one_had_them() {
    let test = journal_of(20);
    let mut journal = test.open();
    read_to(&mut journal, &lead(), 20, 1);
    drop(journal);
    test.flatten();
    zero(&test.home.database(), root(&test, "message"));
    let mut journal = read_all(&test);
    let repair = journal.repair().expect("it was repaired").clone();
    assert_eq!((repair.rescued_rows, bodies(&mut journal).len()), (0, 0), "every message is gone");
    assert_eq!(repair.damaged_copy, test.home.path().join("ringer.db.damaged-1"));
    append(&mut journal, "after");
    assert_eq!(journal.last_seq().unwrap(), 21);
    assert_eq!(heard(&mut journal, lead(), 10), ["after"], "the old place does not skip it");
}

/// Killed between build and swap, or in the middle of the swap.
#[test]
fn a_repair_that_was_cut_off_is_finished() {
    for damaged_is_there in [true, false] {
        let test = journal_of(10);
        fs::copy(test.home.database(), fresh(&test)).unwrap();
        if damaged_is_there {
            fs::write(test.home.database(), b"damaged".repeat(1000)).unwrap();
        } else {
            fs::remove_file(test.home.database()).unwrap();
        }
        let mut journal = test.open();
        assert_eq!(numbers(&mut journal), (0..10).collect::<Vec<u32>>());
        append(&mut journal, "10 after");
        assert_eq!(journal.last_seq().unwrap(), 11);
        assert!(!fresh(&test).exists());
        let aside = fs::read(test.home.path().join("ringer.db.damaged-1")).ok();
        assert!(aside == damaged_is_there.then(|| b"damaged".repeat(1000)), "never deleted");
    }
}

/// A journal gets its name when its tables are in it. One without anything was emptied.
#[test]
fn an_emptied_journal_is_set_aside_with_its_log() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "before");
    let log = fs::read(test.home.path().join("ringer.db-wal")).unwrap();
    fs::write(test.home.database(), "").unwrap();
    let mut other = test.open();
    let repair = other.repair().expect("it was noticed").clone();
    assert_eq!((repair.rescued_rows, repair.damaged_copy), (0, test.home.path().join("ringer.db.damaged-1")));
    assert!(fs::read(test.home.path().join("ringer.db.damaged-1-wal")).unwrap() == log, "never deleted");
    append(&mut other, "after");
    append(&mut journal, "later");
    assert_eq!(bodies(&mut journal), ["after", "later"]);
}

/// To SQLite the log of a removed journal would be that of the new one.
#[test]
fn what_a_removed_journal_left_is_set_aside() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "before");
    fs::remove_file(test.home.database()).unwrap();
    append(&mut journal, "after");
    assert_eq!(bodies(&mut test.open()), ["after"]);
    assert_eq!(test.files("ringer.db.damaged-1"), ["ringer.db.damaged-1-shm", "ringer.db.damaged-1-wal"]);
}

#[test]
fn the_first_journal_of_a_home_repairs_nothing() {
    let test = TestHome::new();
    assert_eq!(test.open().repair(), None);
    // Killed when the first one was finished and had not got its name.
    fs::rename(test.home.database(), fresh(&test)).unwrap();
    test.files("ringer.db-").iter().for_each(|name| fs::remove_file(test.home.path().join(name)).unwrap());
    assert_eq!(test.open().repair(), None);
    assert_eq!(test.files("ringer.db."), Vec::<String>::new());
}

#[test]
fn what_a_repair_left_half_built_is_no_obstacle() {
    let test = journal_of(10);
    fs::write(test.home.path().join("ringer.db.building"), "half").unwrap();
    zero(&test.home.database(), root(&test, "message"));
    let mut journal = read_all(&test);
    append(&mut journal, "10 after");
    assert_eq!(numbers(&mut journal), [10]);
}

/// The fresh one was built before the message came; the writer had the old one open and was told that it is on disk.
#[test]
fn a_writer_between_build_and_swap_loses_nothing() {
    let test = journal_of(10);
    let mut writer = test.open();
    fs::copy(test.home.database(), fresh(&test)).unwrap();
    append(&mut writer, "10 acknowledged");
    let mut journal = test.open();
    assert_eq!(numbers(&mut journal).last(), Some(&10));
}

#[test]
fn an_open_journal_goes_on_with_the_fresh_one() {
    let test = journal_of(3);
    let mut old = test.open();
    fs::copy(test.home.database(), fresh(&test)).unwrap();
    let mut new = test.open();
    assert!(!old.is_current() && new.is_current());
    append(&mut old, "3 from the old one");
    append(&mut new, "4 from the new one");
    assert_eq!(numbers(&mut new), [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&mut old), [0, 1, 2, 3, 4]);
}

/// A repair read the log with the index of the process that has it open, and that spoke of what is not there any more: also what
/// is left could not be read.
#[test]
fn what_is_left_of_a_cut_log_is_saved_by_a_process_that_has_it_open() {
    let test = journal_of(40);
    let mut journal = test.open();
    for number in 40..80 {
        append(&mut journal, &format!("{number} {}", "x".repeat(500)));
    }
    // One that has read nothing yet: it does not find anything in its memory.
    let mut journal = test.open();
    let log = test.home.path().join("ringer.db-wal");
    let length = fs::metadata(&log).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length / 2).unwrap();
    let other = TestHome::new();
    fs::create_dir_all(other.home.path()).unwrap();
    for name in ["ringer.db", "ringer.db-wal"] {
        fs::copy(test.home.path().join(name), other.home.path().join(name)).unwrap();
    }
    let found = numbers(&mut read_all(&other));
    assert!(found.len() > 50, "{found:?}");
    assert_eq!(numbers(&mut journal), found);
    assert!(journal.repair().is_some());
}

/// SQLite would say that the disk is full, for ever.
#[test]
fn numbers_that_are_used_up_are_damage() {
    for damage in [
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE message SET seq = 9223372036854775807 WHERE seq = 3",
    ] {
        let test = journal_of(3);
        test.connection().execute(damage, []).unwrap();
        let mut journal = test.open();
        append(&mut journal, "3 after");
        assert!(journal.repair().is_some(), "{damage}");
        assert_eq!(numbers(&mut journal).last(), Some(&3), "{damage}");
        assert_eq!(heard(&mut journal, lead(), 10).last().map(String::as_str), Some("3 after"), "{damage}");
    }
}

/// The table of waiting processes is not copied: a listener that repairs has to register again, or waits for ever.
#[test]
fn a_listener_that_repairs_stays_registered() {
    let test = journal_of(10);
    zero(&test.home.database(), root(&test, "message"));
    let mut journal = test.open();
    let mut listener = Listener::begin(&mut journal, lead(), None, false, OnParentExit::Continue).unwrap();
    assert!(next(&mut listener, Duration::from_millis(50), 10).is_empty());
    assert!(!test.files("ringer.db.damaged-1").is_empty(), "it was repaired on the way");
    let waiting = test.connection().query_row("SELECT count(*) FROM waiter", [], |row| row.get(0));
    assert_eq!(waiting, Ok(1));
}

/// A row that makes no sense is passed over, also by one who takes one message at a time.
#[test]
fn a_row_that_makes_no_sense_does_not_keep_back_the_next() {
    for (most, damage) in [
        (100, "UPDATE message SET id = '' WHERE seq = 1"),
        (1, "UPDATE message SET id = '' WHERE seq = 1"),
        (1, "UPDATE message SET id = 'a' || char(7) WHERE seq = 1"),
        (1, "UPDATE message SET kind = 'mark-of-a-newer-version' WHERE seq = 1"),
    ] {
        let test = TestHome::new();
        let mut journal = test.open();
        append(&mut journal, "one");
        append(&mut journal, "two");
        assert_eq!(test.connection().execute(damage, []), Ok(1));
        assert_eq!(heard(&mut journal, lead(), most), ["two"], "{most} at a time: {damage}");
    }
}
