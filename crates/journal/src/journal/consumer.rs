//! Consumers: named readers of a scope, each with a cursor that says how far it has read.

use std::path::PathBuf;

use ringer_core::message::InvalidName;
use ringer_core::{Message, MessageId, Recipient, Scope};
use rusqlite::{OptionalExtension, ToSql, Transaction, ffi, params};

use crate::error::Error;
use crate::journal::read::COLUMNS;
use crate::journal::schema::{self, Journal, POSITION};

/// A named reader of the messages of one scope. The lead agent's name is `lead`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Consumer {
    name: String,
    scope: Scope,
}

impl Consumer {
    /// The name of the lead agent's cursor.
    pub const LEAD: &str = "lead";

    /// A consumer of a scope. Its name becomes a file name: letters, digits and `._-`.
    pub fn new(name: &str, scope: Scope) -> Result<Self, InvalidName> {
        let what = "consumer";
        if name.is_empty() {
            return Err(InvalidName::Empty { what });
        }
        if name.starts_with('.') {
            return Err(InvalidName::Character { what, character: '.' });
        }
        if name.len() > 64 {
            return Err(InvalidName::TooLong { what, length: name.len(), most: 64 });
        }
        match name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c))) {
            Some(character) => Err(InvalidName::Character { what, character }),
            None => Ok(Self { name: name.to_owned(), scope }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scope it reads.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn lock(&self, journal: &Journal) -> PathBuf {
        journal.home.locks().join(format!("{}@{}.lock", self.name, self.scope))
    }
}

impl Journal {
    /// Creates the consumer's cursor at the beginning of the journal; with `from_now`, creates it or moves it to the end.
    pub(crate) fn ensure_cursor(
        transaction: &Transaction<'_>,
        consumer: &Consumer,
        from_now: bool,
        unix_ms: i64,
    ) -> rusqlite::Result<()> {
        let last =
            "SELECT ?1, ?2, coalesce(max(seq), 0), (SELECT id FROM message ORDER BY seq DESC LIMIT 1), ?3, 0
                    FROM message WHERE true";
        let start = if from_now { last } else { "VALUES (?1, ?2, 0, NULL, ?3, 0)" };
        let moved = if from_now { "seq = excluded.seq, id = excluded.id," } else { "" };
        transaction
            .prepare(&format!(
                "INSERT INTO cursor (consumer, scope, seq, id, touched, idle) {start}
                 ON CONFLICT (consumer, scope) DO UPDATE SET {moved} touched = excluded.touched, idle = 0"
            ))?
            .execute(params![consumer.name, consumer.scope.as_str(), unix_ms])?;
        Ok(())
    }

    /// Sequence number of the last message a consumer has read; 0 if it has read none.
    pub fn cursor(&mut self, consumer: &Consumer) -> Result<i64, Error> {
        self.read(|connection| {
            let position = connection.query_row(
                &format!("SELECT {POSITION} FROM cursor WHERE consumer = ?1 AND scope = ?2"),
                params![consumer.name, consumer.scope.as_str()],
                |row| row.get(0),
            );
            position.optional().map(Option::unwrap_or_default)
        })
    }

    /// Moves a cursor past a message, never back. If this journal does not have the message, because its file was replaced
    /// since, the cursor stays, and the next reader gets what this journal has.
    pub fn advance(
        &mut self,
        consumer: &Consumer,
        last: (i64, &MessageId),
        unix_ms: i64,
    ) -> Result<(), Error> {
        self.write(|transaction| advance_behind(transaction, consumer, last, unix_ms))
    }

    /// The unread messages of a consumer, in order: those for the lead of its scope that are not its own and have not expired.
    pub fn unread(
        &mut self,
        consumer: &Consumer,
        own: Option<&str>,
        unix_ms: i64,
        most: usize,
    ) -> Result<Vec<Message>, Error> {
        self.check_scope_index(consumer)?;
        let [default, lead, all] = Recipient::FOR_LEAD;
        self.select(
            &format!(
                "SELECT {COLUMNS} FROM message
                 WHERE scope = ?1 AND seq > coalesce((SELECT {POSITION} FROM cursor WHERE consumer = ?2 AND scope = ?1), 0)
                   AND recipient IN (?3, ?4, ?5) AND kind NOT LIKE 'mark-%' AND sender IS NOT ?6
                   AND (ttl IS NULL OR ts + ttl > ?7)
                 ORDER BY seq"
            ),
            params![
                consumer.scope.as_str(),
                consumer.name,
                default,
                lead,
                all,
                own,
                unix_ms,
            ],
            most,
        )
    }
}

impl Journal {
    /// The newest unread messages of a consumer, in order, and the sequence number of the newest message in the journal. Unlike
    /// [`Self::unread`], it may leave out the oldest ones.
    pub fn newest_unread(
        &mut self,
        consumer: &Consumer,
        unix_ms: i64,
        most: usize,
    ) -> Result<(i64, Vec<Message>), Error> {
        let [default, lead, all] = Recipient::FOR_LEAD;
        let newest = self.last_seq()?;
        let mut messages = self.select(
            &format!(
                "SELECT {COLUMNS} FROM message
                 WHERE scope = ?1 AND seq > coalesce((SELECT {POSITION} FROM cursor WHERE consumer = ?2 AND scope = ?1), 0)
                   AND seq <= ?3 AND recipient IN (?4, ?5, ?6) AND kind NOT LIKE 'mark-%'
                   AND (ttl IS NULL OR ts + ttl > ?7)
                 ORDER BY seq DESC"
            ),
            params![consumer.scope.as_str(), consumer.name, newest, default, lead, all, unix_ms],
            most,
        )?;
        messages.reverse();
        Ok((newest, messages))
    }
}

/// Moves a cursor past a message; see [`Journal::advance`].
pub(crate) fn advance_behind(
    transaction: &Transaction<'_>,
    consumer: &Consumer,
    (seq, id): (i64, &MessageId),
    unix_ms: i64,
) -> rusqlite::Result<()> {
    let found = "SELECT ?1, ?2, seq, id, ?5, 0 FROM message WHERE seq = ?3 AND id = ?4";
    let Consumer { name, scope } = consumer;
    advance(transaction, found, params![name, scope.as_str(), seq, id.as_str(), unix_ms])
}

/// How many of the newest messages are checked against the index by scope: enough for those between two reads of a listener, in a
/// third of a millisecond.
const CHECKED: i64 = 1_000;

impl Journal {
    /// Checks that the index by scope contains all of the newest messages that a consumer has not read. SQLite does not detect a
    /// damaged key in it, and the messages with that key would never be read.
    fn check_scope_index(&mut self, consumer: &Consumer) -> Result<(), Error> {
        self.read(|connection| {
            let highest = schema::highest(connection)?;
            let counted = connection.query_row(
                &format!(
                    "WITH place(seq) AS MATERIALIZED (SELECT max(?3, coalesce(
                         (SELECT {POSITION} FROM cursor WHERE consumer = ?2 AND scope = ?1), 0)))
                     SELECT (SELECT count(*) FROM message INDEXED BY message_scope
                                 WHERE scope = ?1 AND seq > (SELECT seq FROM place)),
                            (SELECT count(*) FROM message NOT INDEXED
                                 WHERE scope = ?1 AND seq > (SELECT seq FROM place))"
                ),
                params![consumer.scope.as_str(), consumer.name, highest.saturating_sub(CHECKED)],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
            );
            let (indexed, stored) = counted?;
            if indexed == stored {
                return Ok(());
            }
            let why = Some("the index of messages by scope is damaged".to_owned());
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), why))
        })
    }
}

/// Creates a cursor or moves it forward. Moves it back only if it is not a position in this journal.
pub(crate) fn advance(
    transaction: &Transaction<'_>,
    row: &str,
    parameters: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    transaction
        .prepare(&format!(
            "INSERT INTO cursor (consumer, scope, seq, id, touched, idle) {row}
             ON CONFLICT (consumer, scope) DO UPDATE
             SET seq = max({POSITION}, excluded.seq),
                 id = iif({POSITION} < excluded.seq, excluded.id, id),
                 touched = excluded.touched, idle = 0"
        ))?
        .execute(parameters)
        .map(drop)
}
