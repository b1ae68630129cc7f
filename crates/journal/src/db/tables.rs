//! The schema of a database file: its tables, their version, and what survives a repair; and reading its text columns.

use std::fmt::Debug;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};

use crate::home::Home;

/// Schema version that this program creates and reads (`PRAGMA user_version`).
pub(crate) const VERSION: i64 = 1;

/// Schema version of a file; 0 if it is empty.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Creates the tables in an empty file.
pub(crate) fn make<S: Schema>(connection: &mut Connection) -> rusqlite::Result<()> {
    // The journal mode cannot be changed inside a transaction.
    turn_log_on(connection)?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    execute(&transaction, S::TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Returns true if the file is in WAL mode, in which readers and writers do not wait for one another.
pub(crate) fn has_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA journal_mode", [], |row| Ok(row.get_ref(0)?.as_bytes()? == b"wal"))
}

/// Switches the file to WAL mode, which is persistent.
pub(crate) fn turn_log_on(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
}

/// Returns true if the tables are exactly those that this program creates. Then the file has this version, whatever its
/// `user_version` is.
pub(crate) fn is_own<S: Schema>(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(definitions(connection)? == definitions(&in_memory::<S>()?)?)
}

/// Creates an empty database in memory.
pub(crate) fn in_memory<S: Schema>() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    let transaction = connection.transaction()?;
    execute(&transaction, S::TABLES)?;
    transaction.commit()?;
    Ok(connection)
}

/// All table definitions in a file.
fn definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn execute(transaction: &Transaction<'_>, statements: &[&str]) -> rusqlite::Result<()> {
    statements.iter().try_for_each(|statement| {
        // SQLite stores the statements as text and parses them at every open. Without indentation they fit into the first page,
        // so that damage to another page cannot destroy them, and opening is faster.
        let plain: Vec<&str> = statement.split_whitespace().collect();
        transaction.execute_batch(&plain.join(" "))
    })
}

/// The schema of a database file: its name, its tables, and the order in which they are rescued.
pub trait Schema: Debug + Default {
    /// File name in the home.
    const FILE: &'static str;
    /// Lock file of its writers. Not the database itself: closing a descriptor of it would drop SQLite's locks.
    const LOCK: &'static str;
    /// `CREATE` statements for an empty file.
    const TABLES: &'static [&'static str];
    /// Tables whose rows are copied from a damaged file. The rows of the first one are counted.
    const RESCUED_TABLES: &'static [&'static str];

    /// Called when every readable row is in the fresh file.
    fn after_rescue(_fresh: &Transaction<'_>, _damaged: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }

    /// Returns true if row numbers are exhausted, which SQLite reports as a full disk. Only damage makes them that high.
    fn is_exhausted(_connection: &Connection) -> bool {
        false
    }

    /// Called when the fresh file has replaced the damaged one.
    fn after_repair(_home: &Home) {}
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub_store::HubSchema;
    use crate::journal::schema::JournalSchema;

    fn pages_of_definitions<S: Schema>() -> i64 {
        let directory = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(directory.path().join(S::FILE)).unwrap();
        make::<S>(&mut connection).unwrap();
        let mut count = connection.prepare("SELECT count(*) FROM dbstat WHERE name = 'sqlite_schema'");
        if let Ok(statement) = &mut count {
            return statement.query_row([], |row| row.get(0)).unwrap();
        }
        // Without that table: one leaf of 4096 bytes holds it if its text is short enough.
        let sum =
            "SELECT sum(length(type) + 2 * length(name) + length(coalesce(sql, '')) + 16) FROM sqlite_schema";
        connection.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap() / 3900 + 1
    }

    #[test]
    fn the_tables_fit_into_the_first_page() {
        assert_eq!((pages_of_definitions::<JournalSchema>(), pages_of_definitions::<HubSchema>()), (1, 1));
    }

    #[test]
    fn a_file_of_this_version_is_known_by_its_tables() {
        fn check<S: Schema>() {
            let mut connection = Connection::open_in_memory().unwrap();
            make::<S>(&mut connection).unwrap();
            assert!(is_own::<S>(&connection).unwrap());
            connection.execute_batch("CREATE TABLE another (a)").unwrap();
            assert!(!is_own::<S>(&connection).unwrap());
        }
        check::<JournalSchema>();
        check::<HubSchema>();
    }
}
