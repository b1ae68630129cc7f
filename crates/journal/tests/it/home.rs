//! A journal of a test's own.

use std::time::{Duration, Instant};

use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
use ringer_journal::{Consumer, Cursor, Home, HubStore, IdSource, Journal, Listener, OnParentExit};
use rusqlite::Connection;
use tempfile::TempDir;

/// A temporary home; it goes with it.
pub(crate) struct TestHome {
    _directory: TempDir,
    pub(crate) home: Home,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// In store where the system has a place for that: for tests that write a great deal.
    pub(crate) fn in_memory() -> Self {
        let store = std::path::Path::new("/dev/shm");
        Self::below(if store.is_dir() { store } else { std::path::Path::new("/tmp") })
    }

    fn below(parent: &std::path::Path) -> Self {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        let home = Home::new(directory.path().join("home")).with_hub_starter(Some(repair));
        Self { _directory: directory, home }
    }

    pub(crate) fn open(&self) -> Journal {
        Journal::open(&self.home).expect("a journal")
    }

    pub(crate) fn memory(&self) -> HubStore {
        HubStore::open(&self.home).expect("a store")
    }

    /// The store's file, past it.
    pub(crate) fn memory_connection(&self) -> Connection {
        Connection::open(self.home.path().join("hub.db")).expect("a database")
    }

    /// The database, past the journal.
    pub(crate) fn connection(&self) -> Connection {
        Connection::open(self.home.database()).expect("a database")
    }

    /// Puts everything into one file and leaves no log: what is done to that file is done to the journal.
    pub(crate) fn flatten(&self) {
        let connection = self.connection();
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("no other process has it open");
        connection.close().expect("closed");
    }

    /// The files whose names begin so.
    pub(crate) fn files(&self, beginning: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path()).expect("a home").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with(beginning));
        names.sort();
        names
    }
}

/// Repairs what is damaged, as a hub does that starts.
pub(crate) fn repair(home: &Home) {
    Journal::open_repaired(home).map(drop).expect("a repaired journal");
    if home.path().join("hub.db").exists() {
        HubStore::open_repaired(home).map(drop).expect("a repaired store");
    }
}

/// A moment, with randomness of its own.
pub(crate) fn at(unix_ms: i64) -> IdSource {
    IdSource { unix_ms, ..IdSource::now() }
}

pub(crate) fn scope(name: &str) -> Scope {
    Scope::new(name).expect("a scope")
}

pub(crate) fn draft(body: &str) -> Draft {
    draft_in(Scope::global(), body)
}

pub(crate) fn draft_in(scope: Scope, body: &str) -> Draft {
    Draft::new(scope, Sender::system(), Kind::Status, body).expect("a draft")
}

pub(crate) fn append(journal: &mut Journal, body: &str) -> MessageId {
    journal.append(&draft(body), &IdSource::now()).expect("appended")
}

/// Sends so many messages whose texts are their numbers, each a millisecond after the one before: within the same one, the
/// order of ids is chance.
pub(crate) fn append_numbers(journal: &mut Journal, numbers: std::ops::RangeInclusive<i64>) {
    for number in numbers {
        journal.append(&draft(&number.to_string()), &at(number)).expect("appended");
    }
}

pub(crate) fn lead() -> Consumer {
    Consumer::new(Consumer::LEAD, Scope::global()).expect("a name")
}

/// Every text in the journal, in order.
pub(crate) fn bodies(journal: &mut Journal) -> Vec<String> {
    let messages = journal.messages_after(0, usize::MAX).expect("readable");
    messages.into_iter().map(|message| message.draft.body).collect()
}

/// What a listener is given, by one call that does not wait.
pub(crate) fn heard(journal: &mut Journal, consumer: Consumer, most: usize) -> Vec<String> {
    let mut listener =
        Listener::begin(journal, consumer, None, false, OnParentExit::Continue).expect("it listens");
    next(&mut listener, Duration::ZERO, most)
}

/// What a listener is given within some time.
pub(crate) fn next(listener: &mut Listener<'_>, time: Duration, most: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    listener
        .next(Some(Instant::now() + time), most, |messages| {
            bodies.extend(messages.iter().map(|message| message.draft.body.clone()));
            Ok::<usize, ringer_journal::Error>(messages.len())
        })
        .expect("it listens");
    bodies
}

/// Lets a consumer have read up to a number; with 0, it begins to read.
pub(crate) fn read_to(journal: &mut Journal, consumer: &Consumer, seq: i64, unix_ms: i64) {
    if seq == 0 {
        drop(
            Listener::begin(journal, consumer.clone(), None, false, OnParentExit::Continue)
                .expect("it listens"),
        );
        return;
    }
    let last = journal.messages_after(seq - 1, 1).expect("readable").remove(0);
    assert_eq!(last.seq, seq, "there is such a message");
    journal.advance(consumer, (seq, &last.id), unix_ms).expect("advanced");
}

/// The place in the journal behind the message of a number, as a reader outside its file notes it.
pub(crate) fn place(journal: &mut Journal, seq: i64) -> Cursor {
    let found = journal.messages_after(seq - 1, 1).expect("readable");
    let id = found.iter().find(|message| message.seq == seq).map(|message| message.id.to_string());
    Cursor { generation: Some(journal.generation().expect("readable")), seq, id }
}
