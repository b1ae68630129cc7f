//! The tables, and how older ones become newer ones.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// The steps from an empty file to today, in order. A step is never changed once it was released; a new version adds
/// one.
const MIGRATIONS: [&str; 1] = [
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
];

/// The version this program writes: one for each step.
pub(crate) const VERSION: i64 = 1;

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
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_counts() {
        assert_eq!(usize::try_from(VERSION), Ok(MIGRATIONS.len()));
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        assert_eq!(version(&connection).unwrap(), VERSION);
    }
}
