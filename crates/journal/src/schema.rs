//! The tables of a file, and how older ones become newer ones.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::database::Schema;

/// The version this program writes.
pub(crate) fn newest<S: Schema>() -> i64 {
    i64::try_from(S::MIGRATIONS.len()).map_or(i64::MAX, |steps| steps + 1)
}

/// The version of a file; 0 for an empty one.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a file up to date, all steps in one transaction. The caller has made sure that it is not newer.
pub(crate) fn migrate<S: Schema>(connection: &mut Connection) -> rusqlite::Result<()> {
    // Before the transaction, because it cannot be changed inside one.
    turn_log_on(connection)?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Another process may have migrated it in the meantime.
    match usize::try_from(version(&transaction)?) {
        Ok(0) => execute(&transaction, S::TABLES),
        from => {
            S::MIGRATIONS.iter().skip(from.unwrap_or(1) - 1).try_for_each(|step| execute(&transaction, step))
        }
    }?;
    transaction.pragma_update(None, "user_version", newest::<S>())?;
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
mod tests {
    use super::*;
    use crate::hub_store::HubSchema;
    use crate::journal::JournalSchema;

    fn pages_of_definitions<S: Schema>() -> i64 {
        let directory = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(directory.path().join(S::FILE)).unwrap();
        migrate::<S>(&mut connection).unwrap();
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
    fn an_older_file_keeps_what_is_in_it_and_gets_what_a_new_one_has() {
        let (mut old, mut new) =
            (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        migrate::<JournalSchema>(&mut new).unwrap();
        // Version 1 had no tables for leads and spooled events, and a smaller one for agents.
        migrate::<JournalSchema>(&mut old).unwrap();
        old.execute_batch(
            "DROP TABLE spooled; DROP TABLE lead; DROP TABLE agent; CREATE TABLE agent (id TEXT PRIMARY KEY);
             DROP TABLE repair; ALTER TABLE cursor DROP COLUMN id; ALTER TABLE cursor DROP COLUMN idle;
             DELETE FROM note",
        )
        .unwrap();
        old.execute_batch("PRAGMA user_version = 1; INSERT INTO note VALUES ('a', 'b')").unwrap();
        migrate::<JournalSchema>(&mut old).unwrap();
        let query = "SELECT value FROM note WHERE name = 'a'";
        let note: String = old.query_row(query, [], |row| row.get(0)).unwrap();
        assert_eq!((note.as_str(), version(&old).unwrap()), ("b", newest::<JournalSchema>()));
        assert_eq!(definitions(&old).unwrap(), definitions(&new).unwrap());
    }

    #[test]
    fn a_file_of_this_version_is_known_by_its_tables() {
        fn check<S: Schema>() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate::<S>(&mut connection).unwrap();
            assert!(is_own::<S>(&connection).unwrap());
            connection.execute_batch("CREATE TABLE another (a)").unwrap();
            assert!(!is_own::<S>(&connection).unwrap());
        }
        check::<JournalSchema>();
        check::<HubSchema>();
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::<JournalSchema>(&mut connection).unwrap();
        let before = definitions(&connection).unwrap();
        migrate::<JournalSchema>(&mut connection).unwrap();
        assert_eq!(
            (version(&connection).unwrap(), definitions(&connection).unwrap()),
            (newest::<JournalSchema>(), before)
        );
    }
}
