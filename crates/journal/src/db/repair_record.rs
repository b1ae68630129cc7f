//! The record of repairs, written to the repaired file in the transaction that repairs it. Each one is reported to the person
//! once.

use std::path::PathBuf;

use ringer_core::MessageId;
use rusqlite::{Connection, Row, Transaction, params};

use crate::db::column::{columns, optional_text, text};
use crate::db::damage::FILES;
use crate::home::beside;
use crate::ids::IdSource;

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
pub(crate) fn exists(aside: &std::path::Path) -> bool {
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
pub(crate) fn note_file(
    transaction: &Transaction<'_>,
    aside: &std::path::Path,
    saved: usize,
) -> rusqlite::Result<()> {
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
