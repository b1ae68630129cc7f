//! The numbers of messages: the highest one, the generation of the file, and how far a cursor is.

use rusqlite::Connection;

use crate::db::text::text;

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
