//! Damaged databases: the marker of a damaged file, moving and removing its files, and the record of its repairs.
//!
//! A process that detects damage writes a marker beside the file. From then on no process writes to the file, so nothing is
//! acknowledged that the repair would miss. The running hub exits, and the next one repairs the file before it opens it. The record
//! is written to the repaired file in the transaction that repairs it, so that each repair is reported to the person once.

use std::fs;
use std::path::{Path, PathBuf};

use ringer_core::MessageId;
use rusqlite::{Connection, Row, Transaction, params};

use crate::db::connection::read_index;
use crate::db::log::Log;
use crate::db::tables::{Schema, columns, optional_text, text};
use crate::home::{Home, beside};
use crate::ids::IdSource;
use crate::lock::FileId;
use crate::wake::doorbell;

fn marker_path<S: Schema>(home: &Home) -> PathBuf {
    home.path().join(format!("{}.repair", S::FILE))
}

/// Marks the file as damaged and wakes the hub. Does nothing if the file was replaced, that is repaired, meanwhile.
pub(crate) fn mark<S: Schema>(home: &Home, damaged: FileId) {
    if FileId::of(&home.path().join(S::FILE)).ok() == Some(damaged) {
        // If this fails, the next process will detect the damage itself.
        let _ = fs::write(marker_path::<S>(home), damaged.to_string());
        doorbell::wake_hub(home);
    }
}

/// Returns true if the current file is marked as damaged.
pub(crate) fn is_marked<S: Schema>(home: &Home) -> bool {
    let Ok(marker) = fs::read_to_string(marker_path::<S>(home)) else { return false };
    FileId::of(&home.path().join(S::FILE)).is_ok_and(|file| file.to_string() == marker)
}

/// Removes the marker after a repair.
pub(crate) fn unmark<S: Schema>(home: &Home) {
    // Usually there is none.
    let _ = fs::remove_file(marker_path::<S>(home));
}

/// Returns true if SQLite would silently drop commits from the WAL.
pub(crate) fn is_log_damaged(database: &Path) -> bool {
    let index = read_index(database);
    Log::read(database).is_ok_and(|log| log.is_damaged(index.as_ref()))
}

/// Suffixes of a database's files: the database, its WAL, and the WAL index.
pub(crate) const FILES: [&str; 3] = ["", "-wal", "-shm"];

/// Moves the existing files of a database. Returns true if any was moved.
///
/// The WAL is moved too, because the newest messages may only be in it; and after the database, so that a process that finds a
/// database always finds the WAL that belongs to it.
pub(crate) fn move_database(from: &Path, to: &Path) -> std::io::Result<bool> {
    let mut moved = false;
    for ending in FILES {
        match fs::rename(beside(from, ending), beside(to, ending)) {
            Ok(()) => moved = true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

/// The length of a database's WAL.
pub(crate) fn log_length(database: &Path) -> u64 {
    beside(database, "-wal").metadata().map_or(0, |log| log.len())
}

pub(crate) fn remove_database(path: &Path) {
    for ending in FILES {
        // It may not exist.
        let _ = fs::remove_file(beside(path, ending));
    }
}

/// The table `repair`, which both files have. `id` is the message that reports the repair, and `reported` is 1 once it was sent.
/// `what` is [`FILE`] or the table of a quarantined row; `aside` is the path of a quarantined file, `bytes` a quarantined row.
pub(crate) const REPAIR: &str = "CREATE TABLE repair (
    id TEXT PRIMARY KEY,
    ts INTEGER NOT NULL,
    what TEXT NOT NULL,
    aside TEXT,
    saved INTEGER NOT NULL,
    bytes BLOB,
    reported INTEGER NOT NULL
) STRICT, WITHOUT ROWID";

const FILE: &str = "file";

/// A recorded repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairRecord {
    /// Id of the message that reports it.
    pub id: MessageId,
    /// Time of the repair, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What was damaged.
    pub damage: Damage,
}

/// What was damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// The file. It was quarantined and replaced by a fresh one with all readable rows.
    File {
        /// Path of the quarantined file.
        damaged_copy: PathBuf,
        /// How many rows of the first table were copied: messages, or notifications.
        rescued_rows: usize,
    },
    /// A row. It was removed from its table, and its bytes were stored in the record.
    Row {
        /// Its table.
        table: String,
    },
}

/// Returns true if any file of a quarantined database exists. If the database itself was missing, that is only its WAL.
pub(crate) fn exists(aside: &Path) -> bool {
    FILES.iter().any(|ending| beside(aside, ending).exists())
}

pub(crate) fn select(connection: &Connection, which: &str) -> rusqlite::Result<Vec<RepairRecord>> {
    connection
        .prepare(&format!("SELECT id, ts, what, aside, saved FROM repair WHERE {which} ORDER BY id"))?
        .query_map([], read)?
        .filter_map(Result::transpose)
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Option<RepairRecord>> {
    let Ok(id) = MessageId::parse(&text(row, 0)?) else { return Ok(None) };
    let (what, saved) = (text(row, 2)?, row.get::<_, i64>(4)?);
    let damage = match optional_text(row, 3)? {
        Some(aside) => {
            Damage::File { damaged_copy: aside.into(), rescued_rows: usize::try_from(saved).unwrap_or(0) }
        }
        None => Damage::Row { table: what },
    };
    Ok(Some(RepairRecord { id, unix_ms: row.get(1)?, damage }))
}

/// Records that a damaged file was quarantined.
pub(crate) fn note_file(transaction: &Transaction<'_>, aside: &Path, saved: usize) -> rusqlite::Result<()> {
    let stamp = IdSource::now();
    let saved = i64::try_from(saved).unwrap_or(i64::MAX);
    transaction
        .prepare(
            "INSERT INTO repair (id, ts, what, aside, saved, bytes, reported) VALUES (?1, ?2, ?3, ?4, ?5, NULL, 0)",
        )?
        .execute(params![
            stamp.message_id().as_str(),
            stamp.unix_ms,
            FILE,
            aside.to_string_lossy(),
            saved
        ])
        .map(drop)
}

/// Moves unreadable rows from a table into the record, by their row numbers. Their bytes are stored as comma-separated columns in
/// hexadecimal.
pub(crate) fn quarantine_rows(
    transaction: &Transaction<'_>,
    (table, key): (&str, &str),
    numbers: &[i64],
    mut stamp: IdSource,
) -> rusqlite::Result<()> {
    let columns = columns(transaction, table)?;
    let bytes: Vec<String> = columns.iter().map(|column| format!("hex({})", column.name)).collect();
    let mut keep = transaction.prepare(&format!(
        "INSERT INTO repair (id, ts, what, aside, saved, bytes, reported)
         SELECT ?1, ?2, ?3, NULL, 0, CAST({} AS BLOB), 0 FROM {table} WHERE {key} = ?4",
        bytes.join(" || ',' || ")
    ))?;
    let mut delete = transaction.prepare(&format!("DELETE FROM {table} WHERE {key} = ?1"))?;
    for number in numbers {
        let id = stamp.next().message_id();
        keep.execute(params![id.as_str(), stamp.unix_ms, table, number])?;
        delete.execute([number])?;
    }
    Ok(())
}
