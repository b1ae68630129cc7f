//! The tables of a file, and their version.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::db::schema::Schema;

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

#[cfg(test)]
mod tests;
