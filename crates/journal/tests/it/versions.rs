//! Files of another version, and a number that only looks like one.

use std::fs;
use std::sync::Barrier;
use std::thread;

use ringer_journal::{Error, Journal};

use crate::home::{TestHome, append, bodies};

#[test]
fn another_version_is_refused_and_not_touched() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    test.connection().execute_batch("CREATE TABLE newer (a); PRAGMA user_version = 99").unwrap();
    test.flatten();
    let before = fs::read(test.home.database()).unwrap();
    for opened in [Journal::open(&test.home).map(Some), Journal::open_existing(&test.home)] {
        match opened {
            Err(Error::OtherVersion { found, known, path }) => {
                assert_eq!((found, known, path), (99, 1, test.home.database()));
            }
            other => unreachable!("{other:?}"),
        }
    }
    assert!(fs::read(test.home.database()).unwrap() == before);
    assert!(test.files("ringer.db.").is_empty(), "nothing is set aside");
}

/// The version may be in the log alone: the newer program still runs, and has it open.
#[test]
fn another_version_in_use_is_refused_too() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let newer = test.connection();
    newer.execute_batch("CREATE TABLE newer (a); PRAGMA user_version = 99").unwrap();
    let files = ["ringer.db", "ringer.db-wal"].map(|name| test.home.path().join(name));
    let before = files.clone().map(|path| fs::read(path).unwrap());
    assert!(matches!(Journal::open(&test.home), Err(Error::OtherVersion { found: 99, .. })));
    assert!(files.map(|path| fs::read(path).unwrap()) == before);
    drop(newer);
}

/// One bit of the header is enough for that, and would be an outage for ever.
#[test]
fn a_damaged_version_is_repaired() {
    for version in [0, 3, 5, 9, 17, 67_108_865, -4] {
        let test = TestHome::new();
        append(&mut test.open(), "hello");
        test.connection().pragma_update(None, "user_version", version).unwrap();
        let mut journal = test.open();
        assert!(journal.repair().is_some(), "version {version}");
        append(&mut journal, "after");
        assert_eq!(bodies(&mut journal), ["hello", "after"], "version {version}");
    }
}

#[test]
fn sixty_four_open_a_fresh_home_at_once() {
    let test = TestHome::new();
    let start = Barrier::new(64);
    thread::scope(|threads| {
        for number in 0..64 {
            let (test, start) = (&test, &start);
            threads.spawn(move || {
                start.wait();
                append(&mut test.open(), &number.to_string());
            });
        }
    });
    let mut sent: Vec<u32> = bodies(&mut test.open()).iter().map(|body| body.parse().unwrap()).collect();
    sent.sort_unstable();
    assert_eq!(sent, (0..64).collect::<Vec<u32>>());
}
