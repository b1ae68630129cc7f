//! The tables, and how older ones become newer ones.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// The steps from an empty file to today, in order. A step is never changed once it was released; a new version adds
/// one.
const MIGRATIONS: [&str; 2] = [
    // Version 1.
    "CREATE TABLE message (
         seq INTEGER PRIMARY KEY AUTOINCREMENT,
         id TEXT NOT NULL UNIQUE,
         ts INTEGER NOT NULL,
         scope TEXT NOT NULL,
         sender TEXT NOT NULL,
         kind TEXT NOT NULL,
         recipient TEXT NOT NULL,
         title TEXT,
         subtitle TEXT,
         body TEXT NOT NULL,
         category TEXT,
         question_id TEXT,
         key TEXT,
         ttl INTEGER,
         origin TEXT,
         machine TEXT
     ) STRICT;
     CREATE INDEX message_scope ON message (scope);

     CREATE TABLE cursor (
         consumer TEXT NOT NULL,
         scope TEXT NOT NULL,
         seq INTEGER NOT NULL,
         touched INTEGER NOT NULL,
         PRIMARY KEY (consumer, scope)
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE waiter (
         bell TEXT PRIMARY KEY,
         topic TEXT NOT NULL,
         scope TEXT NOT NULL,
         own TEXT
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE question (
         id TEXT PRIMARY KEY,
         scope TEXT NOT NULL,
         asker TEXT NOT NULL,
         asked INTEGER NOT NULL,
         question TEXT NOT NULL,
         options TEXT NOT NULL,
         answered INTEGER,
         answerer TEXT,
         answer TEXT
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE agent (
         id TEXT PRIMARY KEY,
         client TEXT,
         session_id TEXT,
         scope TEXT NOT NULL,
         worktree TEXT,
         state TEXT NOT NULL,
         since INTEGER NOT NULL,
         seen INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE receipt (
         agent TEXT NOT NULL,
         seq INTEGER NOT NULL,
         state TEXT NOT NULL,
         queued INTEGER NOT NULL,
         leased_until INTEGER,
         call_id TEXT,
         delivered INTEGER,
         seen INTEGER,
         PRIMARY KEY (agent, seq)
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE note (
         name TEXT PRIMARY KEY,
         value TEXT NOT NULL
     ) STRICT, WITHOUT ROWID;",
    // Version 2: what the hub remembers, and agents whose state any process can go on from.
    "CREATE TABLE notification (
         id TEXT PRIMARY KEY,
         seq INTEGER NOT NULL,
         is_read INTEGER NOT NULL,
         record TEXT NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX notification_order ON notification (is_read, seq);

     CREATE TABLE trail (
         id TEXT NOT NULL,
         step INTEGER NOT NULL,
         ts INTEGER NOT NULL,
         text TEXT NOT NULL,
         PRIMARY KEY (id, step)
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE undecided (
         seq INTEGER PRIMARY KEY
     ) STRICT;

     CREATE TABLE outbox (
         id TEXT NOT NULL,
         way TEXT NOT NULL,
         delivery TEXT NOT NULL,
         PRIMARY KEY (id, way)
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE popup (
         key TEXT PRIMARY KEY,
         id TEXT NOT NULL,
         number INTEGER NOT NULL,
         server TEXT NOT NULL
     ) STRICT, WITHOUT ROWID;

     CREATE TABLE dead_letter (
         number INTEGER PRIMARY KEY AUTOINCREMENT,
         id TEXT NOT NULL,
         target TEXT NOT NULL,
         why TEXT NOT NULL,
         ts INTEGER NOT NULL
     ) STRICT;

     CREATE TABLE lead (
         scope TEXT PRIMARY KEY,
         agent TEXT
     ) STRICT, WITHOUT ROWID;

     DROP TABLE agent;
     CREATE TABLE agent (
         id TEXT PRIMARY KEY,
         client TEXT NOT NULL,
         session_id TEXT NOT NULL,
         scope TEXT NOT NULL,
         worktree TEXT,
         cwd TEXT,
         surface TEXT,
         manager TEXT,
         name TEXT,
         pid INTEGER,
         started INTEGER,
         by_hooks INTEGER NOT NULL,
         state TEXT NOT NULL,
         since INTEGER NOT NULL,
         seen INTEGER NOT NULL,
         machine TEXT NOT NULL,
         blocks INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;",
];

/// The version this program writes: one for each step.
pub(crate) const VERSION: i64 = 2;

/// The version of a file; 0 for an empty one.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a file up to date, all steps in one transaction. The caller has made sure that it is not newer.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    // Before the transaction, because it cannot be changed inside one.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Somebody may have been faster.
    let from = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(from) {
        // SQLite keeps and reads the text of every table as it was written. Without its indentation all of it fits into the
        // first page, so that no other page can take the tables with it, and opening is quicker.
        let plain: Vec<&str> = step.split_whitespace().collect();
        transaction.execute_batch(&plain.join(" "))?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_fit_into_the_first_page() {
        let directory = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(directory.path().join("ringer.db")).unwrap();
        migrate(&mut connection).unwrap();
        let mut count = connection.prepare("SELECT count(*) FROM dbstat WHERE name = 'sqlite_schema'");
        let pages = if let Ok(statement) = &mut count {
            statement.query_row([], |row| row.get::<_, i64>(0)).unwrap()
        } else {
            // Without that table: one leaf of 4096 bytes holds it if its text is short enough.
            let sum = "SELECT sum(length(type) + 2 * length(name) + length(coalesce(sql, '')) + 16) FROM sqlite_schema";
            let bytes: i64 = connection.query_row(sum, [], |row| row.get(0)).unwrap();
            bytes / 3900 + 1
        };
        assert_eq!(pages, 1);
    }

    #[test]
    fn every_step_counts() {
        assert_eq!(usize::try_from(VERSION), Ok(MIGRATIONS.len()));
    }

    #[test]
    fn an_older_file_keeps_what_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.execute_batch("PRAGMA user_version = 1; INSERT INTO note VALUES ('a', 'b')").unwrap();
        migrate(&mut connection).unwrap();
        let note: String = connection.query_row("SELECT value FROM note", [], |row| row.get(0)).unwrap();
        assert_eq!((note.as_str(), version(&connection).unwrap()), ("b", VERSION));
        connection.query_row("SELECT count(*) FROM notification", [], |_| Ok(())).unwrap();
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), VERSION);
    }
}
