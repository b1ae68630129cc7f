//! The tables of a file, and their version.

use std::fmt::Debug;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::home::Home;

/// The version of the tables that this program makes and reads.
pub(crate) const VERSION: i64 = 1;

/// The version of a file; 0 for an empty one.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the tables of an empty file.
pub(crate) fn make<S: Schema>(connection: &mut Connection) -> rusqlite::Result<()> {
    // Before the transaction, because it cannot be changed inside one.
    turn_log_on(connection)?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    execute(&transaction, S::TABLES)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Whether changes go into a log beside the file, so that readers and writers do not wait for one another.
pub(crate) fn has_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA journal_mode", [], |row| Ok(row.get_ref(0)?.as_bytes()? == b"wal"))
}

/// Makes changes go into a log. Kept in the file.
pub(crate) fn turn_log_on(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
}

/// Whether the tables are exactly those that this program makes. Then the file is of its version, whatever its number says.
pub(crate) fn is_own<S: Schema>(connection: &Connection) -> rusqlite::Result<bool> {
    let mut own = Connection::open_in_memory()?;
    let transaction = own.transaction()?;
    execute(&transaction, S::TABLES)?;
    Ok(definitions(connection)? == definitions(&transaction)?)
}

/// Every definition in a file.
fn definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn execute(transaction: &Transaction<'_>, statements: &[&str]) -> rusqlite::Result<()> {
    statements.iter().try_for_each(|statement| {
        // SQLite keeps and reads the text of every table as it was written. Without its indentation all of it fits into
        // the first page, so that no other page can take the tables with it, and opening is quicker.
        let plain: Vec<&str> = statement.split_whitespace().collect();
        transaction.execute_batch(&plain.join(" "))
    })
}

/// Schema of one database file: name, tables, rescue order.
pub trait Schema: Debug + Default {
    /// The name of the file in the home.
    const FILE: &'static str;
    /// The file that its writers lock. Not the database itself: closing another descriptor of that would drop SQLite's
    /// locks.
    const LOCK: &'static str;
    /// The definitions of its tables, as an empty file gets them.
    const TABLES: &'static [&'static str];
    /// The tables whose rows are copied out of a damaged file. The rows of the first one are counted.
    const RESCUED_TABLES: &'static [&'static str];

    /// Runs once every readable row is in the fresh file.
    fn after_rescue(_fresh: &Transaction<'_>, _damaged: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }

    /// Whether the row numbers are used up, which SQLite reports as a full disk. Only damage makes them so high.
    fn is_exhausted(_connection: &Connection) -> bool {
        false
    }

    /// Runs once the fresh file has replaced the damaged one.
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
