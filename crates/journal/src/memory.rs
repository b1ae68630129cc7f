//! The hub's memory: which notifications there are, what became of them, and what is under way.
//!
//! A file of its own, beside the journal. The hub writes it and nobody else, so it makes no writer of the journal wait; and
//! whoever opens the journal need not read the definitions of these tables.

use ringer_core::{MessageId, Record, Trail};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::cursor::{CatchUp, Cursor, Taken};
use crate::error::Error;
use crate::home::Home;
use crate::repair::REPAIR;
use crate::settlement::{DeadLetter, Flag, Outgoing, ShownPopup};
use crate::store::{Form, Store};

/// The hub's open memory.
pub type Memory = Store<Notices>;

/// The form of the memory's file.
#[derive(Debug, Default)]
pub struct Notices;

impl Form for Notices {
    const FILE: &'static str = "hub.db";
    const LOCK: &'static str = "hub.lock";
    const TABLES: &'static [&'static str] = &[
        NOTIFICATION,
        "CREATE INDEX notification_read ON notification (is_read)",
        TRAIL,
        "CREATE TABLE undecided (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
        OUTBOX,
        POPUP,
        DEAD_LETTER,
        "CREATE TABLE flag (reason TEXT NOT NULL, place TEXT NOT NULL, PRIMARY KEY (reason, place)) STRICT, WITHOUT ROWID",
        TAKEN,
        REPAIR,
    ];
    const STEPS: &'static [&'static [&'static str]] = &[
        // The hub's place names the journal and the message, and what was repaired is noted.
        &[
            "ALTER TABLE taken RENAME TO taken_1",
            TAKEN,
            "INSERT INTO taken (one, seq) SELECT one, seq FROM taken_1",
            "DROP TABLE taken_1",
            REPAIR,
        ],
    ];
    const SAVED: &'static [&'static str] =
        &["notification", "trail", "undecided", "outbox", "popup", "dead_letter", "flag", "taken", "repair"];
}

const NOTIFICATION: &str = "CREATE TABLE notification (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    is_read INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT";

const TRAIL: &str = "CREATE TABLE trail (
    id TEXT NOT NULL,
    step INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (id, step)
) STRICT, WITHOUT ROWID";

const OUTBOX: &str = "CREATE TABLE outbox (
    id TEXT NOT NULL,
    way TEXT NOT NULL,
    delivery TEXT NOT NULL,
    PRIMARY KEY (id, way)
) STRICT, WITHOUT ROWID";

const POPUP: &str = "CREATE TABLE popup (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    server TEXT NOT NULL
) STRICT, WITHOUT ROWID";

const DEAD_LETTER: &str = "CREATE TABLE dead_letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    why TEXT NOT NULL,
    ts INTEGER NOT NULL
) STRICT";

/// A [`Taken`]: one row.
const TAKEN: &str = "CREATE TABLE taken (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT,
    seq INTEGER NOT NULL,
    id TEXT,
    newest TEXT,
    until INTEGER
) STRICT";

impl Memory {
    /// How far in the journal the hub has come. `None` if it never wrote that down.
    pub fn taken(&self) -> Result<Option<Taken>, Error> {
        let taken =
            self.connection.query_row("SELECT generation, seq, id, newest, until FROM taken", [], |row| {
                let (newest, until): (Option<String>, Option<i64>) = (row.get(3)?, row.get(4)?);
                Ok(Taken {
                    cursor: Cursor { generation: row.get(0)?, seq: row.get(1)?, id: row.get(2)? },
                    catch_up: newest.zip(until).map(|(newest, until)| CatchUp { newest, until }),
                })
            });
        taken.optional().map_err(|error| self.error(error))
    }

    /// Whether the hub took that message before: it is a notification, or something is written down about it.
    pub fn knows(&self, id: &MessageId) -> Result<bool, Error> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM notification WHERE id = ?1)
                     OR EXISTS (SELECT 1 FROM trail WHERE id = ?1)
                     OR EXISTS (SELECT 1 FROM undecided WHERE id = ?1)",
            )
            .and_then(|mut statement| statement.query_row([id.as_str()], |row| row.get(0)))
            .map_err(|error| self.error(error))
    }

    /// The messages that the hub took and had not decided when it ended.
    pub fn undecided(&self) -> Result<Vec<MessageId>, Error> {
        self.rows("SELECT id FROM undecided ORDER BY id", message_id)
    }

    /// The notifications that are remembered, in the order they came: all that are unread, and so many of the others.
    pub fn remembered(&self, most_read: usize) -> Result<Vec<Record>, Error> {
        let most = i64::try_from(most_read).unwrap_or(i64::MAX);
        let select = || -> rusqlite::Result<Vec<Record>> {
            let mut statement = self.connection.prepare(
                "SELECT id, record FROM (
                     SELECT * FROM notification WHERE is_read = 0
                     UNION ALL
                     SELECT * FROM (SELECT * FROM notification WHERE is_read = 1 ORDER BY number DESC LIMIT ?1)
                 ) ORDER BY number",
            )?;
            let mut rows = statement.query([most])?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
                // A row that makes no sense is passed over.
                if let Ok(mut record) = serde_json::from_str::<Record>(&record) {
                    record.trail = self.steps_of(&id)?;
                    records.push(record);
                }
            }
            Ok(records)
        };
        select().map_err(|error| self.error(error))
    }

    /// How many notifications the person has not read.
    pub fn unread(&self) -> Result<i64, Error> {
        let count = "SELECT count(*) FROM notification WHERE is_read = 0";
        self.connection.query_row(count, [], |row| row.get(0)).map_err(|error| self.error(error))
    }

    /// One notification, with its trail.
    pub fn notification(&self, id: &str) -> Result<Option<Record>, Error> {
        let select = || -> rusqlite::Result<Option<Record>> {
            let found: Option<String> = self
                .connection
                .query_row("SELECT record FROM notification WHERE id = ?1", [id], |row| row.get(0))
                .optional()?;
            let record = found.and_then(|record| serde_json::from_str::<Record>(&record).ok());
            record.map(|record| Ok(Record { trail: self.steps_of(id)?, ..record })).transpose()
        };
        select().map_err(|error| self.error(error))
    }

    /// What became of a message, step by step.
    pub fn trail(&self, id: &str) -> Result<Trail, Error> {
        self.steps_of(id).map_err(|error| self.error(error))
    }

    fn steps_of(&self, id: &str) -> rusqlite::Result<Trail> {
        let mut statement =
            self.connection.prepare_cached("SELECT ts, text FROM trail WHERE id = ?1 ORDER BY step")?;
        let mut rows = statement.query([id])?;
        let mut trail = Trail::default();
        while let Some(row) = rows.next()? {
            trail.add(row.get(0)?, row.get::<_, String>(1)?);
        }
        Ok(trail)
    }

    /// The deliveries that were under way when the hub ended.
    pub fn outbox(&self) -> Result<Vec<Outgoing>, Error> {
        self.rows("SELECT id, way, delivery FROM outbox ORDER BY id, way", |row| {
            let Some(id) = message_id(row)? else { return Ok(None) };
            Ok(Some(Outgoing { id, way: row.get(1)?, delivery: row.get(2)? }))
        })
    }

    /// The deliveries that were given up, newest first.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        self.rows("SELECT id, target, why, ts FROM dead_letter ORDER BY number DESC", |row| {
            let Some(id) = message_id(row)? else { return Ok(None) };
            Ok(Some(DeadLetter { id, target: row.get(1)?, why: row.get(2)?, unix_ms: row.get(3)? }))
        })
    }

    /// The popups that were on the screen when the hub ended, oldest first.
    pub fn popups(&self) -> Result<Vec<ShownPopup>, Error> {
        self.rows("SELECT id, key, number, server FROM popup ORDER BY id", |row| {
            let Some(id) = message_id(row)? else { return Ok(None) };
            Ok(Some(ShownPopup { id, key: row.get(1)?, number: row.get(2)?, server: row.get(3)? }))
        })
    }

    /// The flags that are up.
    pub fn flags(&self) -> Result<Vec<Flag>, Error> {
        self.rows("SELECT reason, place FROM flag ORDER BY reason, place", |row| {
            Ok(Some(Flag { reason: row.get(0)?, place: row.get(1)? }))
        })
    }

    /// All rows of a query; those that make no sense are passed over.
    fn rows<T>(
        &self,
        query: &str,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, Error> {
        let mut select = || -> rusqlite::Result<Vec<T>> {
            let mut statement = self.connection.prepare(query)?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.extend(read(row)?);
            }
            Ok(all)
        };
        select().map_err(|error| self.error(error))
    }

    /// Forgets what is read and what became of messages, where they are older than the oldest that the journal has. What
    /// is unread stays on the list.
    pub fn prune(&mut self, oldest: &MessageId) -> Result<(), Error> {
        // Ids begin with the time, in 13 characters; what follows is chance.
        let before = oldest.as_str().get(..13).unwrap_or_default();
        self.write(|transaction| {
            for query in [
                "DELETE FROM notification WHERE is_read = 1 AND id < ?1",
                "DELETE FROM trail WHERE id < ?1 AND id NOT IN (SELECT id FROM notification)",
            ] {
                transaction.prepare(query)?.execute([before])?;
            }
            Ok(())
        })
    }

    /// Forgets everything about some messages.
    pub fn forget(&mut self, ids: &[MessageId]) -> Result<(), Error> {
        self.write(|transaction| {
            for table in ["notification", "trail", "undecided", "outbox", "popup", "dead_letter"] {
                let mut delete = transaction.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
                for id in ids {
                    delete.execute([id.as_str()])?;
                }
            }
            Ok(())
        })
    }
}

/// The id in the first column, if it is one.
fn message_id(row: &Row<'_>) -> rusqlite::Result<Option<MessageId>> {
    Ok(MessageId::parse(&row.get::<_, String>(0)?).ok())
}

/// Takes the hub's memory over from a journal of version 2, which had it in its own file. Whoever is killed on the way
/// leaves it there, and the next one begins again.
pub(crate) fn move_out(home: &Home, journal: &Connection) -> Result<(), Error> {
    let memory = Memory::open(home)?;
    let path = home.path().join(Notices::FILE);
    let failed = |error| memory.error(error);
    journal.execute("ATTACH ?1 AS memory", [path.to_string_lossy()]).map_err(failed)?;
    let copied = journal.execute_batch(
        "BEGIN IMMEDIATE;
         INSERT OR IGNORE INTO memory.notification (id, is_read, record)
             SELECT id, is_read, record FROM main.notification ORDER BY seq;
         INSERT OR IGNORE INTO memory.trail SELECT id, step, ts, text FROM main.trail;
         INSERT OR IGNORE INTO memory.undecided
             SELECT id FROM main.message WHERE seq IN (SELECT seq FROM main.undecided);
         INSERT OR IGNORE INTO memory.outbox SELECT id, way, delivery FROM main.outbox;
         INSERT OR IGNORE INTO memory.popup SELECT key, id, number, server FROM main.popup;
         INSERT OR IGNORE INTO memory.dead_letter SELECT number, id, target, why, ts FROM main.dead_letter;
         INSERT OR IGNORE INTO memory.taken (one, seq)
             SELECT 1, seq FROM main.cursor WHERE consumer = 'hub' AND scope = '*';
         COMMIT;",
    );
    copied.and_then(|()| journal.execute_batch("DETACH memory")).map_err(failed)
}
