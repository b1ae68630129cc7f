//! A damaged database is set aside, never deleted, and a fresh one begun with whatever could be read.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::doorbell;
use crate::error::Error;
use crate::home::{Home, sync_directory};
use crate::lock::FileNumber;
use crate::schema;
use crate::turn::{self, Patience};

/// What was done to a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Where the damaged file is now.
    pub aside: PathBuf,
    /// How many messages were carried over.
    pub messages: usize,
}

/// Sets the damaged database aside, under the write lock. `None` if somebody else has done it in the meantime.
///
/// The fresh one is built first, while the damaged one still has its name, and then takes its place. Whoever is killed
/// on the way leaves either the old state or a finished fresh one that [`finish`] puts in place.
pub(crate) fn set_aside(
    home: &Home,
    patience: Patience,
    damaged: Option<FileNumber>,
) -> Result<Option<Repair>, Error> {
    let turn = turn::take(home, patience)?;
    if FileNumber::of(&home.database()).ok() != damaged {
        return Ok(None);
    }
    let messages = build(home)?;
    let aside = swap(home)?;
    drop(turn);
    // Whoever sleeps has the old file open and is registered nowhere now: all are woken, and look.
    for bell in doorbell::all(home) {
        doorbell::ring(&bell);
    }
    Ok(Some(Repair { aside, messages }))
}

/// Puts a finished fresh database in place, if somebody was killed before he could.
pub(crate) fn finish(home: &Home, patience: Patience) -> Result<Option<Repair>, Error> {
    if !is_pending(home) {
        return Ok(None);
    }
    let _turn = turn::take(home, patience)?;
    if !is_pending(home) {
        return Ok(None);
    }
    let messages = count(&fresh(home));
    Ok(Some(Repair { aside: swap(home)?, messages }))
}

/// Whether a finished fresh database waits to be put in place.
pub(crate) fn is_pending(home: &Home) -> bool {
    fresh(home).exists()
}

/// How many messages a database holds, as far as it can tell.
fn count(database: &Path) -> usize {
    let count = Connection::open(database).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM message", [], |row| row.get::<_, i64>(0))
    });
    count.ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// The finished fresh database.
fn fresh(home: &Home) -> PathBuf {
    home.path().join("ringer.db.fresh")
}

/// Builds a fresh database out of the damaged one. Gives the number of messages.
fn build(home: &Home) -> Result<usize, Error> {
    let building = home.path().join("ringer.db.building");
    let io = |error| home.error("beginning a new database", error);
    let failed = |error| Error::database(&building, Duration::ZERO, error);
    remove_database(&building);
    OpenOptions::new().append(true).create(true).mode(0o600).open(&building).map_err(io)?;
    let mut connection = Connection::open(&building).map_err(failed)?;
    schema::migrate(&mut connection).map_err(failed)?;
    let messages = carry_over(&mut connection, &home.database()).map_err(failed)?;
    // Closing copies the log into the file, so that one file is all there is to move.
    connection.close().map_err(|(_, error)| failed(error))?;
    fs::rename(&building, fresh(home)).and_then(|()| sync_directory(home.path())).map_err(io)?;
    Ok(messages)
}

/// Moves the damaged database aside and the fresh one in its place.
fn swap(home: &Home) -> Result<PathBuf, Error> {
    let aside = free_name(home);
    move_database(&home.database(), &aside)
        .and_then(|()| fs::rename(fresh(home), home.database()))
        .and_then(|()| sync_directory(home.path()))
        .map_err(|error| home.error("setting the database aside", error))?;
    Ok(aside)
}

fn free_name(home: &Home) -> PathBuf {
    let named = |number: u32| home.path().join(format!("ringer.db.damaged-{number}"));
    (1..u32::MAX).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(u32::MAX))
}

/// The log and its index go along: the newest messages may be in them alone.
fn move_database(from: &Path, to: &Path) -> std::io::Result<()> {
    for ending in ["-wal", "-shm", ""] {
        match fs::rename(beside(from, ending), beside(to, ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn remove_database(path: &Path) {
    for ending in ["-wal", "-shm", ""] {
        // Mostly there is none.
        let _ = fs::remove_file(beside(path, ending));
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The tables worth saving. Who waits is not among them: they register again.
const TABLES: [&str; 12] = [
    "message",
    "cursor",
    "question",
    "agent",
    "receipt",
    "notification",
    "trail",
    "undecided",
    "outbox",
    "popup",
    "dead_letter",
    "lead",
];

/// Copies every row that can be read. Gives the number of messages.
fn carry_over(fresh: &mut Connection, damaged: &Path) -> rusqlite::Result<usize> {
    let transaction = Transaction::new(fresh, TransactionBehavior::Immediate)?;
    let mut highest = 0;
    let mut messages = 0;
    if let Ok(old) = Connection::open_with_flags(damaged, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        for table in TABLES {
            let copied = copy_table(&old, &transaction, table);
            if table == "message" {
                messages = copied;
            }
        }
        // Also where no message could be read: its numbers must not be given again, or cursors would skip new ones.
        highest = old
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'message'", [], |row| row.get(0))
            .unwrap_or(0);
    }
    let floor = transaction.query_row(
        "SELECT max(?1, coalesce((SELECT max(seq) FROM message), 0), coalesce((SELECT max(seq) FROM cursor), 0))",
        [highest],
        |row| row.get::<_, i64>(0),
    )?;
    transaction.execute("DELETE FROM sqlite_sequence WHERE name = 'message'", [])?;
    transaction.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('message', ?1)", [floor])?;
    transaction.commit()?;
    Ok(messages)
}

/// Reads forward, and where that breaks off, backward from the end, so that one bad page in the middle costs only
/// itself and not everything behind it.
fn copy_table(old: &Connection, fresh: &Transaction<'_>, table: &str) -> usize {
    ["ASC", "DESC"].iter().map(|order| copy_rows(old, fresh, table, order).unwrap_or(0)).sum()
}

fn copy_rows(old: &Connection, fresh: &Transaction<'_>, table: &str, order: &str) -> rusqlite::Result<usize> {
    let columns = columns(fresh, table)?;
    let key = &columns[0];
    let names = columns.join(", ");
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert = fresh.prepare(&format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})"))?;
    let mut select = old.prepare(&format!("SELECT {names} FROM {table} ORDER BY {key} {order}"))?;
    let mut rows = select.query([])?;
    let mut copied = 0;
    // An unreadable row ends this direction; a row that breaks a rule of the table is left out.
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<rusqlite::types::Value>> =
            (0..columns.len()).map(|n| row.get(n)).collect();
        let Ok(values) = values else { continue };
        copied += insert.execute(rusqlite::params_from_iter(values)).unwrap_or(0);
    }
    Ok(copied)
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?
        .query_map([table], |row| row.get(0))?
        .collect()
}
