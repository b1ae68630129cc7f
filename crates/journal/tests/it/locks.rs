//! The kernel drops all locks of a process on a file when the process closes any descriptor of it. SQLite takes care of that;
//! code that opens the database itself has to do so as well.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::home::{TestHome, append, bodies};

/// Number of locks that this process holds on a file.
fn locks(test: &TestHome) -> usize {
    let inode = fs::metadata(test.home.database()).expect("a database").ino();
    let (pid, inode) = (std::process::id().to_string(), format!(":{inode}"));
    let all = fs::read_to_string("/proc/locks").expect("Linux tells");
    all.lines().filter(|line| line.contains("POSIX") && line.contains(&pid) && line.contains(&inode)).count()
}

/// While other processes lock and unlock, `/proc/locks` may skip one of our locks: it is enough to see it once.
fn holds_a_lock(test: &TestHome) -> bool {
    (0..100).any(|_| locks(test) > 0)
}

#[test]
fn closing_one_journal_leaves_the_locks_of_another() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "one");
    assert!(holds_a_lock(&test), "an open journal holds a lock");
    let mut other = test.open();
    append(&mut other, "two");
    drop(other);
    assert!(holds_a_lock(&test));
    assert_eq!(bodies(&mut journal), ["one", "two"]);
    drop(journal);
    assert_eq!(locks(&test), 0);
}

#[test]
fn looking_whether_it_is_current_leaves_them_too() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "one");
    assert!(journal.is_current());
    journal.refresh().unwrap();
    assert!(holds_a_lock(&test));
}
