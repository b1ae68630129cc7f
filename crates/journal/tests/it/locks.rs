//! The kernel drops all of a process's locks on a file when any descriptor of it is closed. SQLite knows; code that
//! opens the database beside it has to know as well.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::home::{TestHome, append, bodies};

/// How many locks this process has on a file.
fn locks(test: &TestHome) -> usize {
    let inode = fs::metadata(test.home.database()).expect("a database").ino();
    let (pid, inode) = (std::process::id().to_string(), format!(":{inode}"));
    let all = fs::read_to_string("/proc/locks").expect("Linux tells");
    all.lines().filter(|line| line.contains("POSIX") && line.contains(&pid) && line.contains(&inode)).count()
}

/// While other processes take and leave theirs, the kernel's list may leave one of ours out: one look that shows it is
/// enough.
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
