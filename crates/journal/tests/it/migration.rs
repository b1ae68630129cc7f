//! From an empty file to today's tables, and no step back.

use std::fs;
use std::sync::Barrier;
use std::thread;

use ringer_journal::{Error, Journal};

use crate::home::{TestHome, append, bodies};

#[test]
fn an_empty_file_becomes_a_journal() {
    let test = TestHome::new();
    fs::create_dir_all(test.home.path().join("bells")).unwrap();
    fs::create_dir_all(test.home.path().join("locks")).unwrap();
    fs::write(test.home.database(), "").unwrap();
    let mut journal = test.open();
    assert_eq!(journal.repair(), None);
    append(&mut journal, "hello");
    assert_eq!(bodies(&journal), ["hello"]);
}

#[test]
fn a_database_of_version_0_becomes_a_journal() {
    let test = TestHome::new();
    fs::create_dir_all(test.home.path()).unwrap();
    test.connection().execute_batch("CREATE TABLE unrelated (a); DROP TABLE unrelated;").unwrap();
    let mut journal = test.open();
    append(&mut journal, "hello");
    assert_eq!(bodies(&journal), ["hello"]);
}

#[test]
fn a_newer_one_is_refused_and_not_touched() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let ours: i64 = test.connection().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    test.connection().pragma_update(None, "user_version", 99).unwrap();
    test.flatten();
    let before = fs::read(test.home.database()).unwrap();
    for opened in [Journal::open(&test.home).map(Some), Journal::open_existing(&test.home)] {
        match opened {
            Err(Error::Newer { found, known, path }) => {
                assert_eq!((found, path), (99, test.home.database()));
                assert!(known < 99);
            }
            other => unreachable!("{other:?}"),
        }
    }
    assert!(fs::read(test.home.database()).unwrap() == before);
    assert!(test.files("ringer.db.").is_empty(), "nothing is set aside");
    // Whoever knows it finds everything.
    test.connection().pragma_update(None, "user_version", ours).unwrap();
    assert_eq!(bodies(&test.open()), ["hello"]);
}

/// The version may be in the log alone: the newer program still runs, and has it open.
#[test]
fn a_newer_one_in_use_is_refused_too() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let newer = test.connection();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let files = ["ringer.db", "ringer.db-wal"].map(|name| test.home.path().join(name));
    let before = files.clone().map(|path| fs::read(path).unwrap());
    assert!(matches!(Journal::open(&test.home), Err(Error::Newer { found: 99, .. })));
    assert!(files.map(|path| fs::read(path).unwrap()) == before);
    drop(newer);
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
    let mut sent: Vec<u32> = bodies(&test.open()).iter().map(|body| body.parse().unwrap()).collect();
    sent.sort_unstable();
    assert_eq!(sent, (0..64).collect::<Vec<u32>>());
}
