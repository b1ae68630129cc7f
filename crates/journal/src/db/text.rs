//! Texts of rows, read so that a damaged byte costs a character and not the row.

use rusqlite::Row;
use rusqlite::types::ValueRef;

/// A text. Bytes that are no UTF-8 are replaced with U+FFFD: a damaged byte costs a character, and not the row.
///
/// Every text of both files is read with this or with [`optional_text`]. `row.get` fails on such bytes, and a
/// single one would make the whole query fail.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        // The tables are strict: another type is damage of the file, which is repaired.
        other => Err(rusqlite::Error::InvalidColumnType(column, "text".to_owned(), other.data_type())),
    }
}

/// The same where there may be none.
pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => text(row, column).map(Some),
    }
}
