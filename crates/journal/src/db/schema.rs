//! What distinguishes the database files from one another.

use std::fmt::Debug;

use rusqlite::{Connection, Transaction};

use crate::home::Home;

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
