//! A place in the journal, and whether it is still a place in this one: the file may have been removed, damaged, or
//! replaced by an older copy since.

use ringer_core::{Message, MessageId};
use rusqlite::Connection;

use crate::error::Error;
use crate::journal::Journal;
use crate::row::{optional_text, text};

/// The highest number that this file ever gave to a message, an expression.
///
/// Messages that were pruned are gone from the table, and a damaged file may have lost the row that counts.
macro_rules! highest {
    () => {
        "max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0), \
             coalesce((SELECT max(seq) FROM message), 0))"
    };
}

/// How far the reader of a row of `cursor` has come, an expression.
///
/// The row names the message that was taken last by its number and by its id. Where the two do not fit together, the row
/// or that message is damaged: then the reader goes on behind the message of that id, or starts over. What a reader is
/// given twice has the same id both times; what it is never given would be lost. The generation is not in the row: the
/// row is in the file that it would name.
pub(crate) const POSITION: &str = concat!(
    "CASE WHEN cursor.seq <= ",
    highest!(),
    " AND NOT EXISTS (SELECT 1 FROM message AS last WHERE last.seq = cursor.seq AND last.id IS NOT cursor.id)
      THEN cursor.seq ELSE coalesce((SELECT last.seq FROM message AS last WHERE last.id = cursor.id), 0) END"
);

/// A place in a journal: every message up to there was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The random word that the journal's file was begun with. `None` if it was not noted: schema 1 of the hub's memory
    /// did not have it.
    pub generation: Option<String>,
    /// The number of the message that was taken last; 0 before the first.
    pub seq: i64,
    /// The id of that message.
    pub id: Option<String>,
}

/// How far a reader outside the journal's file has come in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPosition {
    /// The place.
    pub cursor: Cursor,
    /// Set while it reads again what an exchanged journal had when that was noticed.
    pub catch_up: Option<CatchUp>,
}

/// Reading again from the beginning, because the journal is another one or an older copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUp {
    /// The newest message that was taken before. Ids begin with the time, so one that is not newer was sent earlier.
    /// Empty if that is not known.
    pub newest: String,
    /// The highest number when the exchange was noticed. What comes behind it is new.
    pub until: i64,
}

/// What a message means to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It comes for the first time.
    New,
    /// It may have come before: those whose id the reader knows did.
    MaybeSeen,
    /// It was sent before the newest message that was taken. If the reader does not know it, it missed it then.
    Old,
}

impl ReadPosition {
    /// A message was taken.
    pub fn advance(&mut self, seq: i64, id: &MessageId) {
        self.cursor.seq = seq;
        self.cursor.id = Some(id.to_string());
        self.catch_up.take_if(|catch_up| catch_up.until <= seq);
    }

    /// What a message means that comes behind this place.
    pub fn age(&self, message: &Message) -> Age {
        match &self.catch_up {
            Some(catch_up) if message.seq <= catch_up.until => {
                if *message.id.as_str() <= *catch_up.newest {
                    Age::Old
                } else {
                    Age::MaybeSeen
                }
            }
            _ => Age::New,
        }
    }

    /// The newest message that was taken, by its id.
    fn newest(&self) -> Option<String> {
        let before = self.catch_up.as_ref().map(|catch_up| catch_up.newest.clone());
        before.max(self.cursor.id.clone())
    }
}

impl Journal {
    /// The random word that this file was begun with. Empty if damage took it.
    pub fn generation(&mut self) -> Result<String, Error> {
        self.read(generation)
    }

    /// Where a reader goes on in this file: at its place if that is one of this file, else at the beginning.
    pub fn resume_at(&mut self, taken: &ReadPosition) -> Result<ReadPosition, Error> {
        self.read(|connection| resume_at(connection, taken))
    }

    /// The number of the last message that the journal ever had; 0 in a new one.
    pub fn highest(&mut self) -> Result<i64, Error> {
        self.read(highest)
    }
}

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

fn resume_at(connection: &Connection, taken: &ReadPosition) -> rusqlite::Result<ReadPosition> {
    let (generation, highest) = (generation(connection)?, highest(connection)?);
    let cursor = &taken.cursor;
    let id: Option<String> =
        connection.query_row("SELECT (SELECT id FROM message WHERE seq = ?1)", [cursor.seq], |row| {
            optional_text(row, 0)
        })?;
    let is_same = match &cursor.generation {
        Some(known) => *known == generation && (id.is_none() || id == cursor.id),
        // What schema 1 noted was a number alone.
        None => true,
    };
    if is_same && cursor.seq <= highest {
        let id = id.or_else(|| cursor.id.clone());
        let cursor = Cursor { generation: Some(generation), seq: cursor.seq, id };
        return Ok(ReadPosition { cursor, catch_up: taken.catch_up.clone() });
    }
    let has_taken = cursor.seq > 0 || taken.catch_up.is_some();
    let catch_up = CatchUp { newest: taken.newest().unwrap_or_default(), until: highest };
    let catch_up = Some(catch_up).filter(|_| has_taken);
    Ok(ReadPosition { cursor: Cursor { generation: Some(generation), seq: 0, id: None }, catch_up })
}
