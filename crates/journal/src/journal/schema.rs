//! The schema of the journal: messages, and all other state that every process may change. Also the sequence numbers of
//! messages, and notes.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::damage::REPAIR;
use crate::db::database::Database;
use crate::db::tables::{Schema, text};
use crate::home::{Home, JOURNAL_FILE};
use crate::wake::doorbell;

/// An open journal.
pub type Journal = Database<JournalSchema>;

/// The schema of the journal.
#[derive(Debug, Default)]
pub struct JournalSchema {
    hub_was_woken: bool,
}

impl Schema for JournalSchema {
    const FILE: &'static str = JOURNAL_FILE;
    const LOCK: &'static str = "write.lock";
    const TABLES: &'static [&'static str] = &[
        MESSAGE,
        MESSAGE_SCOPE,
        MESSAGE_QUESTION,
        CURSOR,
        WAITER,
        QUESTION,
        PROMPT,
        AGENT,
        AGENT_PROCESS,
        RECEIPT,
        RECEIPT_SEQ,
        NOTE,
        LEAD,
        SPOOLED,
        REPAIR,
        GENERATION,
    ];
    /// Not `waiter`: waiting processes register again.
    const RESCUED_TABLES: &'static [&'static str] = &[
        "message",
        "cursor",
        "question",
        "prompt",
        "agent",
        "agent_process",
        "receipt",
        "lead",
        "note",
        "spooled",
        "repair",
    ];

    /// Restores the highest sequence number, even if no message could be read: if numbers were reused, cursors would skip new
    /// messages. Messages keep their numbers, so cursors into the damaged file stay valid.
    fn after_rescue(fresh: &Transaction<'_>, damaged: &Connection) -> rusqlite::Result<()> {
        let highest: i64 = damaged
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'message'", [], |row| row.get(0))
            .unwrap_or(0);
        fresh.execute("DELETE FROM message WHERE seq > ?1", [HIGHEST_NUMBER])?;
        let highest = Some(highest).filter(|highest| *highest <= HIGHEST_NUMBER).unwrap_or(0);
        let floor: i64 = fresh.query_row(
            "SELECT max(?1, coalesce((SELECT max(seq) FROM message), 0),
                        coalesce((SELECT max(seq) FROM cursor WHERE seq <= ?2), 0),
                        coalesce((SELECT max(seq) FROM receipt WHERE seq <= ?2), 0))",
            [highest, HIGHEST_NUMBER],
            |row| row.get(0),
        )?;
        fresh.execute("DELETE FROM sqlite_sequence WHERE name = 'message'", [])?;
        fresh.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('message', ?1)", [floor])?;
        if let Ok(generation) = generation(damaged)
            && is_generation(&generation)
        {
            fresh.execute("UPDATE note SET value = ?1 WHERE name = 'generation'", [generation])?;
        }
        Ok(())
    }

    fn is_exhausted(connection: &Connection) -> bool {
        let query = "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
                                coalesce((SELECT max(seq) FROM message), 0))";
        connection.query_row(query, [], |row| row.get(0)).is_ok_and(|highest: i64| highest > HIGHEST_NUMBER)
    }

    /// Wakes all waiting processes, so that they open the new file and register in it.
    fn after_repair(home: &Home) {
        doorbell::wake_all(home);
    }
}

impl Journal {
    /// Wakes doorbells and the hub. Call it after the commit, not before.
    pub(crate) fn wake(&mut self, bells: &[String]) {
        doorbell::wake_named(&self.home, bells);
        self.wake_hub();
    }

    /// Wakes only the hub, after a change that only the hub reads.
    pub(crate) fn wake_hub(&mut self) {
        self.schema.hub_was_woken = doorbell::wake_hub(&self.home);
    }

    /// Returns true if a hub was running at the last change. If not, the caller has to start one.
    pub fn hub_was_woken(&self) -> bool {
        self.schema.hub_was_woken
    }
}

const MESSAGE: &str = "CREATE TABLE message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    ts INTEGER NOT NULL,
    scope TEXT NOT NULL,
    sender TEXT NOT NULL,
    kind TEXT NOT NULL,
    recipient TEXT NOT NULL,
    title TEXT,
    subtitle TEXT,
    body TEXT NOT NULL,
    category TEXT,
    question_id TEXT,
    key TEXT,
    ttl INTEGER,
    origin TEXT,
    machine TEXT,
    about TEXT
) STRICT";

const MESSAGE_SCOPE: &str = "CREATE INDEX message_scope ON message (scope)";

const MESSAGE_QUESTION: &str =
    "CREATE INDEX message_question ON message (question_id) WHERE question_id IS NOT NULL";

const RECEIPT_SEQ: &str = "CREATE INDEX receipt_seq ON receipt (seq)";

/// `id` is the id of message `seq`. `touched` is a time for people; `idle` counts the prunings since the last use, because clocks
/// jump.
const CURSOR: &str = "CREATE TABLE cursor (
    consumer TEXT NOT NULL,
    scope TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT,
    touched INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    PRIMARY KEY (consumer, scope)
) STRICT, WITHOUT ROWID";

const WAITER: &str = "CREATE TABLE waiter (
    bell TEXT PRIMARY KEY,
    topic TEXT NOT NULL,
    scope TEXT NOT NULL,
    own TEXT
) STRICT, WITHOUT ROWID";

const QUESTION: &str = "CREATE TABLE question (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    asker TEXT NOT NULL,
    asked INTEGER NOT NULL,
    question TEXT NOT NULL,
    options TEXT NOT NULL,
    answered INTEGER,
    answerer TEXT,
    answer TEXT
) STRICT, WITHOUT ROWID";

/// `key` is the key of its notification. `handed` is when the answer was passed to the client, `ended` when the client continued.
const PROMPT: &str = "CREATE TABLE prompt (
    key TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    scope TEXT NOT NULL,
    call TEXT NOT NULL,
    asked INTEGER NOT NULL,
    prompt TEXT NOT NULL,
    answer TEXT,
    answerer TEXT,
    answered INTEGER,
    answered_with TEXT,
    handed INTEGER,
    ended INTEGER
) STRICT, WITHOUT ROWID";

/// `newest` is the time of its newest event, in nanoseconds on the monotonic clock. `nonce` proves to its session that a
/// notification is genuine.
const AGENT: &str = "CREATE TABLE agent (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    session_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    worktree TEXT,
    cwd TEXT,
    surface TEXT,
    manager TEXT,
    name TEXT,
    pid INTEGER,
    started INTEGER,
    by_hooks INTEGER NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    machine TEXT NOT NULL,
    blocks INTEGER NOT NULL,
    newest INTEGER NOT NULL DEFAULT 0,
    nonce TEXT
) STRICT, WITHOUT ROWID";

/// Processes registered for agents. A process stays registered until it exits.
const AGENT_PROCESS: &str = "CREATE TABLE agent_process (
    pid INTEGER NOT NULL,
    started INTEGER NOT NULL,
    agent TEXT NOT NULL,
    PRIMARY KEY (pid, started)
) STRICT, WITHOUT ROWID";

const RECEIPT: &str = "CREATE TABLE receipt (
    agent TEXT NOT NULL,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL DEFAULT 0,
    parts INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL,
    queued INTEGER NOT NULL,
    leased_until INTEGER,
    call_id TEXT,
    delivered INTEGER,
    seen INTEGER,
    PRIMARY KEY (agent, seq, part)
) STRICT, WITHOUT ROWID";

const NOTE: &str = "CREATE TABLE note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID";

const SPOOLED: &str = "CREATE TABLE spooled (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID";

/// `may_decide`: the lead may answer prompts of other agents.
const LEAD: &str = "CREATE TABLE lead (
    scope TEXT PRIMARY KEY,
    agent TEXT,
    may_decide INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID";

/// Enough for a message per microsecond for 250 years. A higher number is damage.
const HIGHEST_NUMBER: i64 = 1 << 53;

/// A random word per file, so that a cursor into one file is not mistaken for a cursor into another.
const GENERATION: &str =
    "INSERT OR REPLACE INTO note (name, value) VALUES ('generation', lower(hex(randomblob(8))))";

/// Returns true for a word in the format of [`GENERATION`]: 8 bytes in hexadecimal.
fn is_generation(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// SQL expression for the highest sequence number that this file ever assigned.
///
/// Pruned messages are gone from the table, and a damaged file may have lost its row in `sqlite_sequence`.
macro_rules! highest {
    () => {
        "max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0), \
             coalesce((SELECT max(seq) FROM message), 0))"
    };
}

/// SQL expression for the position of a row of `cursor`.
///
/// The row contains the sequence number and the id of the last message read. If they do not match, the row or that message is
/// damaged: then the reader continues after the message with that id, or starts over. A message delivered twice has the same id
/// both times; a message never delivered would be lost. The row contains no generation, because it is stored in the file
/// itself.
pub(crate) const POSITION: &str = concat!(
    "CASE WHEN cursor.seq <= ",
    highest!(),
    " AND NOT EXISTS (SELECT 1 FROM message AS last WHERE last.seq = cursor.seq AND last.id IS NOT cursor.id)
      THEN cursor.seq ELSE coalesce((SELECT last.seq FROM message AS last WHERE last.id = cursor.id), 0) END"
);

pub(crate) fn generation(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row(
        "SELECT coalesce((SELECT value FROM note WHERE name = 'generation'), '')",
        [],
        |row| text(row, 0),
    )
}

pub(crate) fn highest(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(concat!("SELECT ", highest!()), [], |row| row.get(0))
}

/// Reads a note: a value stored under a name.
pub(crate) fn note(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare_cached("SELECT value FROM note WHERE name = ?1")?;
    select.query_row([name], |row| text(row, 0)).optional()
}

/// Stores a note in place of the one before.
pub(crate) fn set_note(transaction: &Transaction<'_>, name: &str, value: &str) -> rusqlite::Result<()> {
    transaction
        .prepare("INSERT OR REPLACE INTO note (name, value) VALUES (?1, ?2)")?
        .execute(params![name, value])
        .map(drop)
}
