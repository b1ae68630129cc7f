//! Many writers at once.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use ringer_journal::IdSource;

use crate::home::{TestHome, append, bodies, draft};

#[test]
fn sixty_four_writers_at_once_all_succeed() {
    const WRITERS: usize = 64;
    const EACH: usize = 4;
    // This tests the locks. On a slow disk, the last writer would wait longer than a command's timeout.
    let test = TestHome::in_memory();
    drop(test.open());
    let start = Barrier::new(WRITERS);
    thread::scope(|threads| {
        for writer in 0..WRITERS {
            let (test, start) = (&test, &start);
            threads.spawn(move || {
                let mut journal = test.open();
                start.wait();
                for number in 0..EACH {
                    append(&mut journal, &format!("{writer}-{number}"));
                }
            });
        }
    });
    let messages = test.open().messages_after(0, usize::MAX).unwrap();
    let numbers: Vec<i64> = messages.iter().map(|message| message.seq).collect();
    assert_eq!(numbers, (1..=256).collect::<Vec<i64>>(), "no gap, no number twice");
    let ids: BTreeSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
    let texts: BTreeSet<&str> = messages.iter().map(|message| message.draft.body.as_str()).collect();
    assert_eq!((ids.len(), texts.len()), (WRITERS * EACH, WRITERS * EACH));
}

#[test]
fn the_same_id_twice_is_one_message() {
    let test = TestHome::new();
    let mut journal = test.open();
    let id = append(&mut journal, "hello");
    journal.append_as(&draft("hello"), &id, IdSource::now().unix_ms).unwrap();
    assert_eq!(bodies(&mut journal), ["hello"]);
}
