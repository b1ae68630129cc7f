//! Reads text columns, and converts values of a damaged file to the types of their columns.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row};

/// A column of a strict table.
pub(crate) struct Column {
    pub(crate) name: String,
    kind: ColumnKind,
    may_be_null: bool,
}

#[derive(Clone, Copy)]
enum ColumnKind {
    Number,
    Text,
    Bytes,
}

impl Column {
    /// Converts a value to the type of this column, because the tables are strict. Text keeps its bytes, including invalid UTF-8.
    pub(crate) fn fitting<'a>(&self, value: ValueRef<'a>) -> ToSqlOutput<'a> {
        match (self.kind, value) {
            (_, ValueRef::Null) if self.may_be_null => ToSqlOutput::Borrowed(value),
            (ColumnKind::Number, ValueRef::Integer(_)) => ToSqlOutput::Borrowed(value),
            (ColumnKind::Number, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
                number.unwrap_or(0_i64).into()
            }
            (ColumnKind::Number, ValueRef::Null | ValueRef::Real(_)) => 0_i64.into(),
            (ColumnKind::Text, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                ToSqlOutput::Borrowed(ValueRef::Text(bytes))
            }
            (ColumnKind::Bytes, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
                ToSqlOutput::Borrowed(ValueRef::Blob(bytes))
            }
            (_, ValueRef::Integer(number)) => number.to_string().into(),
            (_, ValueRef::Real(number)) => number.to_string().into(),
            (_, ValueRef::Null) => String::new().into(),
        }
    }
}

pub(crate) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    connection
        .prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid")?
        .query_map([table], |row| {
            let kind = match row.get::<_, String>(1)?.as_str() {
                "INTEGER" => ColumnKind::Number,
                "BLOB" => ColumnKind::Bytes,
                _ => ColumnKind::Text,
            };
            let may_be_null = !row.get::<_, bool>(2)? && row.get::<_, i64>(3)? == 0;
            Ok(Column { name: row.get(0)?, kind, may_be_null })
        })?
        .collect()
}

/// Reads a text column. Invalid UTF-8 is replaced with U+FFFD, so that a damaged byte costs a character and not the row.
///
/// All text of both files is read with this or with [`optional_text`]: `row.get` fails on invalid UTF-8, and a single byte would
/// make the whole query fail.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        // The tables are strict: another type is damage, which leads to a repair.
        other => Err(rusqlite::Error::InvalidColumnType(column, "text".to_owned(), other.data_type())),
    }
}

/// Reads a text column that may be null.
pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => text(row, column).map(Some),
    }
}
