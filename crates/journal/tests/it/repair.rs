//! Damaged databases: what is rescued, who repairs them, and interrupted repairs.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_journal::{Error, Home, IdSource, Journal, Listener, OnParentExit};

use crate::home::{TestHome, append, bodies, draft, heard, lead, next, read_to};

const PAGE: usize = 4096;

/// A journal with this many messages and an empty WAL.
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

/// Root page of a table.
fn root(test: &TestHome, table: &str) -> usize {
    let query = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: i64 = test.connection().query_row(query, [table], |row| row.get(0)).expect("a table");
    usize::try_from(root).expect("small")
}

/// Overwrites a page. Pages are numbered from 1.
fn zero(path: &Path, page: usize) {
    let mut bytes = fs::read(path).expect("a database");
    bytes[(page - 1) * PAGE..page * PAGE].fill(0);
    fs::write(path, bytes).expect("written");
}

fn fresh(test: &TestHome) -> PathBuf {
    test.home.path().join("ringer.db.fresh")
}

/// Reads all messages, which repairs the file if necessary.
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
    // Any page: root, leaf, index or free.
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
    // The other pages belong to tables that this test does not read.
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

/// The process may be killed between build and swap, or during the swap.
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

/// A journal gets its name when it has tables, so an empty one was truncated.
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

/// SQLite would apply the WAL of a removed journal to the new one.
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
    // Killed after the first journal was complete but before it got its name.
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

/// The fresh file was built before the message was written to the old one and acknowledged.
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

/// A repair used to read the WAL with the index of a process that had it open. The index described frames that no longer
/// existed, so that the remaining ones could not be read either.
#[test]
fn what_is_left_of_a_cut_log_is_saved_by_a_process_that_has_it_open() {
    let test = journal_of(40);
    let mut journal = test.open();
    for number in 40..80 {
        append(&mut journal, &format!("{number} {}", "x".repeat(500)));
    }
    // This one has read nothing yet, so its cache is empty.
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

/// Otherwise SQLite would report a full disk for ever.
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

/// The table of waiting processes is not rescued: a listener has to register again, or it would wait for ever.
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

/// Damaged rows are skipped, also by a reader that reads one message at a time.
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

const FRAME: usize = 24 + PAGE;

/// Changes a byte of a frame in the WAL, in place, so that processes with the file open see it.
fn damage_frame(test: &TestHome, frame: usize, at: usize) {
    let log = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(test.home.path().join("ringer.db-wal"))
        .expect("a log");
    let (at, mut byte) = ((32 + frame * FRAME + 24 + at) as u64, [0]);
    log.read_exact_at(&mut byte, at).expect("a log");
    log.write_all_at(&[byte[0] ^ 0xff], at).expect("a log");
}

/// The last frame of a page in the WAL.
fn last_frame_of(test: &TestHome, page: usize) -> usize {
    let log = fs::read(test.home.path().join("ringer.db-wal")).expect("a log");
    let pages =
        log[32..].chunks_exact(FRAME).map(|frame| u32::from_be_bytes(frame[..4].try_into().expect("a log")));
    pages
        .enumerate()
        .filter(|(_, own)| *own as usize == page)
        .map(|(frame, _)| frame)
        .max()
        .expect("it is in the log")
}

/// If no process has the WAL open, SQLite treats the damaged frame as its end and silently drops acknowledged commits after it.
#[test]
fn what_was_acknowledged_behind_damaged_frames_is_there() {
    let test = journal_of(20);
    let mut journal = test.open();
    append(&mut journal, "20 before");
    append(&mut journal, "21 before");
    damage_frame(&test, 0, 1000);
    append(&mut journal, "22 acknowledged");
    drop(journal);
    let mut journal = test.open();
    assert_eq!(numbers(&mut journal), (0..=22).collect::<Vec<u32>>());
    assert!(journal.repair().is_some(), "it is told");
}

/// A process with an open WAL keeps writing after a frame that another process finds damaged. The repair used to read only up
/// to that frame.
#[test]
fn what_a_live_process_acknowledged_behind_damaged_frames_survives_a_repair() {
    let test = journal_of(20);
    let mut hub = test.open();
    read_to(&mut hub, &lead(), 10, 1);
    let cursors = last_frame_of(&test, root(&test, "cursor"));
    append(&mut hub, "20 before");
    damage_frame(&test, cursors, 0);
    append(&mut hub, "21 acknowledged");
    let mut other = test.open();
    let heard = heard(&mut other, lead(), 100);
    assert_eq!(heard.last().map(String::as_str), Some("21 acknowledged"), "{heard:?}");
    assert!(other.repair().is_some(), "it was damaged");
    assert_eq!(numbers(&mut hub), (0..=21).collect::<Vec<u32>>());
}

/// Only a starting hub repairs. Until then, no process acknowledges a message.
#[test]
fn a_process_that_meets_damage_ends_and_nothing_is_acknowledged_until_it_is_repaired() {
    let test = journal_of(20);
    let home = Home::new(test.home.path());
    let mut hub = Journal::open(&home).unwrap();
    append(&mut hub, "20 before");
    zero(&test.home.database(), root(&test, "cursor"));
    let mut other = Journal::open(&home).unwrap();
    assert!(other.unread(&lead(), None, 0, 1).is_err_and(|error| error.is_corruption()));
    let ids = IdSource::now();
    assert!(hub.append(&draft("21 late"), &ids).is_err_and(|error| error.is_corruption()));
    assert!(hub.is_damaged() && hub.refresh().is_err());
    assert!(Journal::open(&home).is_err_and(|error| error.is_corruption()));
    let mut repaired = Journal::open_repaired(&home).unwrap();
    assert_eq!(numbers(&mut repaired), (0..=20).collect::<Vec<u32>>());
    append(&mut repaired, "21 after");
    hub.refresh().unwrap();
    assert!(hub.is_reopened() && !hub.is_damaged());
    assert_eq!(numbers(&mut hub).last(), Some(&21));
}

/// A process that is killed while writing leaves an incomplete commit.
#[test]
fn a_write_that_was_cut_off_is_no_damage() {
    let test = journal_of(5);
    let mut journal = test.open();
    append(&mut journal, "5 whole");
    drop(journal);
    let log = test.home.path().join("ringer.db-wal");
    let whole = fs::read(&log).unwrap();
    let mut cut = whole.clone();
    cut.extend_from_slice(&whole[32..32 + FRAME]);
    cut.extend_from_slice(&whole[32..32 + FRAME / 2]);
    fs::write(&log, cut).unwrap();
    let mut journal = test.open();
    assert_eq!((numbers(&mut journal), journal.repair()), ((0..=5).collect(), None));
}

/// The pages on the path to each message, from the root of the table to the leaf.
fn paths(database: &[u8], page: usize, above: &[usize], paths: &mut Vec<(i64, Vec<usize>)>) {
    let bytes = &database[(page - 1) * PAGE..page * PAGE];
    let path = [above, &[page]].concat();
    let short = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let child = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let varint = |at: &mut usize| {
        let mut number = 0_i64;
        loop {
            let byte = bytes[*at];
            *at += 1;
            number = number << 7 | i64::from(byte & 0x7f);
            if byte < 0x80 {
                return number;
            }
        }
    };
    let cells = short(3);
    match bytes[0] {
        5 => {
            for cell in 0..cells {
                self::paths(database, child(short(12 + 2 * cell)), &path, paths);
            }
            self::paths(database, child(8), &path, paths);
        }
        kind => {
            assert_eq!(kind, 13, "the kind of page {page}");
            for cell in 0..cells {
                let mut at = short(8 + 2 * cell);
                assert!(varint(&mut at) < 4000, "a row has no overflow pages here");
                paths.push((varint(&mut at), path.clone()));
            }
        }
    }
}

/// Rows between two damaged pages used to be lost: the table was read forwards to the first page, and backwards to the last.
#[test]
fn every_message_whose_pages_are_sound_is_rescued() {
    let test = journal_of(1500);
    let before = fs::read(test.home.database()).unwrap();
    let pages = before.len() / PAGE;
    let mut rows = Vec::new();
    paths(&before, root(&test, "message"), &[], &mut rows);
    assert_eq!(rows.len(), 1500);
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % end as u64).unwrap()
    };
    let mut between = 0;
    for round in 0..12 {
        let mut damaged = before.clone();
        let bad: Vec<usize> = (0..=round).map(|_| 2 + below(pages - 1)).collect();
        for page in &bad {
            damaged[(page - 1) * PAGE..page * PAGE].fill_with(|| u8::try_from(below(256)).unwrap());
        }
        fs::write(test.home.database(), damaged).unwrap();
        let mut journal = read_all(&test);
        let saved: HashSet<u32> = numbers(&mut journal).into_iter().collect();
        let (lost, sound): (Vec<_>, Vec<_>) =
            rows.iter().partition(|(_, path)| path.iter().any(|page| bad.contains(page)));
        for (seq, path) in &sound {
            let number = u32::try_from(*seq - 1).unwrap();
            assert!(
                saved.contains(&number),
                "{round}: {number} is lost, its pages {path:?} are sound, bad: {bad:?}"
            );
        }
        let ends = lost.first().zip(lost.last());
        between += ends.map_or(0, |(first, last)| {
            sound.iter().filter(|(seq, _)| (first.0..last.0).contains(seq)).count()
        });
        drop(journal);
        for name in test.files("ringer.db-").into_iter().chain(test.files("ringer.db.")) {
            fs::remove_file(test.home.path().join(name)).unwrap();
        }
    }
    assert!(between > 1000, "only {between} were between damaged pages");
}

#[test]
fn a_home_that_was_removed_is_not_made_anew_by_what_opened_it_as_it_was() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let mut journal = Journal::open_existing(&test.home).unwrap().expect("it is there");
    fs::remove_dir_all(test.home.path()).unwrap();
    assert!(matches!(journal.refresh(), Err(Error::Missing { .. })));
    assert!(Journal::open_existing(&test.home).unwrap().is_none());
    assert!(!test.home.path().exists());
    append(&mut test.open(), "anew");
    assert!(test.home.path().exists());
}
