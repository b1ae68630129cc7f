//! Copies every readable row of a damaged database into a fresh one.

use std::collections::BinaryHeap;
use std::ffi::CStr;
use std::fs;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Params, Statement, Transaction};

use crate::db::connection::read_index;
use crate::db::damage::{log_length, remove_database};
use crate::db::log::Log;
use crate::db::tables::{Column, Schema, columns};
use crate::home::Home;
use crate::lock::FileId;

/// Size of the smallest row in SQLite's format: a cell pointer of two bytes and a cell of two.
const SMALLEST_ROW: u64 = 4;

/// How many ranges of row numbers are tried per table. A damaged page costs about two for each of its rows.
const MAX_PROBES: usize = 10_000;

/// SQLite's VFS without file locks.
const WITHOUT_LOCKS: &CStr = c"unix-none";

/// Copies every readable row of a damaged database. Returns the number of rows copied from the first table.
///
/// If frames of the WAL are damaged, the database is read twice: first including these frames, because usually only a few bytes
/// of a page are wrong, and then without them for the rows that are still missing.
pub(crate) fn copy_readable_rows<S: Schema>(
    home: &Home,
    damaged: &Path,
    fresh: &Transaction<'_>,
) -> rusqlite::Result<usize> {
    let file = FileId::of(damaged).ok();
    // Not opened if empty: SQLite would remove its WAL.
    let Some(length) = file.map(FileId::length).filter(|length| *length > 0) else { return Ok(0) };
    // Pages of a damaged file may form a cycle, so the number of rows is bounded by the file size.
    let most = (length + log_length(damaged)) / SMALLEST_ROW;
    let index = read_index(damaged);
    let log = Log::read(damaged).ok();
    let has_damaged_frames = log.as_ref().is_some_and(|log| log.has_damaged_frames(index.as_ref()));
    let mut copied = 0;
    for keeps_damaged in [true, false] {
        if !keeps_damaged && !has_damaged_frames {
            break;
        }
        let readable = home.path().join(format!("{}.reading", S::FILE));
        remove_database(&readable);
        let linked = fs::hard_link(damaged, &readable).or_else(|_| fs::copy(damaged, &readable).map(drop));
        let logged = linked.and_then(|()| match &log {
            Some(log) => log.write_readable((damaged, &readable), index.as_ref(), keeps_damaged),
            None => Ok(()),
        });
        if let Some(old) = logged.ok().and_then(|()| open_damaged(&readable)) {
            let counts: Vec<usize> =
                S::RESCUED_TABLES.iter().map(|table| copy_table(&old, fresh, table, most)).collect();
            copied += counts.first().copied().unwrap_or_default();
            S::after_rescue(fresh, &old)?;
        }
        remove_database(&readable);
    }
    Ok(copied)
}

/// Opens a damaged database for reading. No other process uses this hard link, so SQLite needs no locks and keeps the WAL index
/// in memory.
fn open_damaged(readable: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let old = Connection::open_with_flags_and_vfs(readable, flags, WITHOUT_LOCKS).ok()?;
    // The file must not change.
    old.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok()?;
    // Fails if the file is damaged so badly that nothing can be read.
    old.pragma_update(None, "locking_mode", "EXCLUSIVE").ok()?;
    Some(old)
}

fn copy_table(old: &Connection, fresh: &Transaction<'_>, table: &str, most: u64) -> usize {
    let has_numbers = fresh.prepare(&format!("SELECT rowid FROM {table}")).is_ok();
    let copied = if has_numbers {
        copy_by_number(old, fresh, table, most)
    } else {
        ["ASC", "DESC"]
            .iter()
            .try_fold(0, |copied, order| Ok(copied + copy_all(old, fresh, table, order, most)?))
    };
    copied.unwrap_or(0)
}

/// Inserts rows into a table of the fresh database.
struct Copier<'a> {
    columns: Vec<Column>,
    insert: Statement<'a>,
    copied: usize,
}

impl<'a> Copier<'a> {
    fn new(fresh: &'a Transaction<'_>, table: &str) -> rusqlite::Result<Self> {
        let columns = columns(fresh, table)?;
        let places = vec!["?"; columns.len()].join(", ");
        let names = names(&columns);
        let insert = fresh.prepare(&format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})"))?;
        Ok(Self { columns, insert, copied: 0 })
    }

    /// Skips a row that violates a constraint of the table.
    fn copy(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        for (number, column) in self.columns.iter().enumerate() {
            self.insert.raw_bind_parameter(number + 1, column.fitting(row.get_ref(number)?))?;
        }
        self.copied += self.insert.raw_execute().unwrap_or(0);
        Ok(())
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Copies a table without row numbers in one direction, up to the first unreadable row.
fn copy_all(
    old: &Connection,
    fresh: &Transaction<'_>,
    table: &str,
    order: &str,
    most: u64,
) -> rusqlite::Result<usize> {
    let mut copier = Copier::new(fresh, table)?;
    let (names, key) = (names(&copier.columns), copier.columns[0].name.clone());
    let mut select = old.prepare(&format!("SELECT {names} FROM {table} ORDER BY {key} {order}"))?;
    let mut rows = select.query([])?;
    for _ in 0..most {
        let Ok(Some(row)) = rows.next() else { break };
        copier.copy(row)?;
    }
    Ok(copier.copied)
}

/// An inclusive range of row numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
}

impl Range {
    fn width(self) -> u64 {
        self.last.abs_diff(self.first)
    }

    fn halves(self) -> [Self; 2] {
        let middle = i64::midpoint(self.first, self.last);
        [Self { last: middle, ..self }, Self { first: middle + 1, ..self }]
    }
}

/// The widest range comes first.
impl Ord for Range {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.width(), other.first).cmp(&(other.width(), self.first))
    }
}

impl PartialOrd for Range {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How reading a range ended.
enum Scan {
    Whole,
    /// Stopped by damage after this row.
    Broken(Option<i64>),
}

/// Copies a table by row numbers. SQLite descends the B-tree to any number, so rows between two damaged pages can be reached by
/// number: a range that cannot be read completely, neither forwards nor backwards, is halved.
fn copy_by_number(
    old: &Connection,
    fresh: &Transaction<'_>,
    table: &str,
    most: u64,
) -> rusqlite::Result<usize> {
    let mut copier = Copier::new(fresh, table)?;
    let names = names(&copier.columns);
    let select = |order: &str| {
        let all = format!(
            "SELECT {names}, rowid FROM {table} WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid {order}"
        );
        old.prepare(&all)
    };
    let (mut upward, mut downward) = (select("ASC")?, select("DESC")?);
    let given: i64 = old
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = ?1", [table], |row| row.get(0))
        .unwrap_or(0);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut ranges = BinaryHeap::from([Range { first: i64::MIN, last: i64::MAX }]);
    for _ in 0..MAX_PROBES {
        let Some(range) = ranges.pop() else { break };
        let Scan::Broken(last) = scan(&mut upward, [range.first, range.last], &mut copier)? else { continue };
        let begins = last.map_or(Some(range.first), |last| last.checked_add(1));
        let Some(first) = begins.filter(|first| *first <= range.last) else { continue };
        let Scan::Broken(next) = scan(&mut downward, [first, range.last], &mut copier)? else { continue };
        let ends = next.map_or(Some(range.last), |next| next.checked_sub(1));
        let Some(last) = ends.filter(|last| *last > first) else { continue };
        // If the first or last page is damaged, the range of row numbers is unknown.
        let first = if first == i64::MIN { 0.min(last) } else { first };
        let highest = first.saturating_add(most).max(given);
        let last = if last == i64::MAX { highest } else { last };
        if first < last {
            ranges.extend(Range { first, last }.halves());
        }
    }
    Ok(copier.copied)
}

/// Copies the rows of a query. Stops if their numbers are not monotonic: then pages form a cycle.
fn scan(select: &mut Statement<'_>, range: impl Params, copier: &mut Copier<'_>) -> rusqlite::Result<Scan> {
    let number = copier.columns.len();
    let mut rows = select.query(range)?;
    let (mut before, mut step) = (None, None);
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Scan::Whole),
            Err(_) => return Ok(Scan::Broken(before)),
        };
        let Ok(here) = row.get::<_, i64>(number) else { return Ok(Scan::Broken(before)) };
        if let Some(before) = before {
            let direction = here.cmp(&before);
            if direction.is_eq() || step.is_some_and(|step| step != direction) {
                return Ok(Scan::Broken(Some(before)));
            }
            step = Some(direction);
        }
        copier.copy(row)?;
        before = Some(here);
    }
}
