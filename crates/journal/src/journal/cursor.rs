//! A place in the journal, and whether it is still a place in this one: the file may have been removed, damaged, or
//! replaced by an older copy since.

use rusqlite::Connection;

use crate::db::text::optional_text;
use crate::error::Error;
use crate::journal::schema::Journal;
use crate::journal::sequence::{generation, highest};
use crate::position::{CatchUp, Cursor, ReadPosition};

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
