//! What distinguishes the database files from one another.

use std::fmt::Debug;

use rusqlite::{Connection, Transaction};

use crate::error::Error;
use crate::home::Home;

/// Schema of one database file: name, tables, migrations, rescue order.
pub trait Schema: Debug + Default {
    /// The name of the file in the home.
    const FILE: &'static str;
    /// The file that its writers lock. Not the database itself: closing another descriptor of that would drop SQLite's
    /// locks.
    const LOCK: &'static str;
    /// The definitions of its tables, as an empty file gets them.
    const TABLES: &'static [&'static str];
    /// The statements that make the next version out of an older file, beginning with version 1. A migration is never
    /// changed once it was released. Each one changes a table: that is how a newer file is distinguished from a damaged
    /// version number.
    const MIGRATIONS: &'static [&'static [&'static str]];
    /// The tables whose rows are copied out of a damaged file. The rows of the first one are counted.
    const RESCUED_TABLES: &'static [&'static str];

    /// Runs before an older file is migrated.
    fn before_migration(_home: &Home, _connection: &Connection, _version: i64) -> Result<(), Error> {
        Ok(())
    }

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
