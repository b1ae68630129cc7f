//! The schema of a database file: its tables, their version, and what survives a repair.

use std::fmt::Debug;

use rusqlite::{Connection, Transaction, TransactionBehavior};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub_store::store::HubSchema;
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
