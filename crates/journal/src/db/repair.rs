//! Repairs a damaged database: replaces it with a fresh one that contains all readable rows. The damaged file is quarantined,
//! never deleted.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_platform::sync_directory;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::db::damage::{self, FILES, move_database, remove_database};
use crate::db::rescue;
use crate::db::tables::{self, Schema};
use crate::db::write_lock::{self, LockTimeout};
use crate::error::Error;
use crate::home::{Home, beside};
use crate::lock::FileId;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Where the damaged file was moved to.
    pub damaged_copy: PathBuf,
    /// How many rows of the first table were copied: messages, or notifications.
    pub rescued_rows: usize,
}

/// Repairs the damaged database under the write lock. `None` if the file was replaced meanwhile.
///
/// Only for a starting hub and `ringer doctor --repair`, which hold the hub's lock. The fresh database is built while the
/// damaged one still has its name, and then takes its place. A process that is killed in between leaves either the old state or
/// a complete fresh database, which [`finish`] puts in place.
pub(crate) fn quarantine<S: Schema>(
    home: &Home,
    lock_timeout: LockTimeout,
    damaged: Option<FileId>,
) -> Result<Option<Repair>, Error> {
    let write_lock = write_lock::acquire(home, S::LOCK, lock_timeout)?;
    if FileId::of(&home.path().join(S::FILE)).ok() != damaged {
        return Ok(None);
    }
    let saved = build::<S>(home)?;
    let aside = swap::<S>(home)?;
    drop(write_lock);
    S::after_repair(home);
    Ok(aside.map(|aside| Repair { damaged_copy: aside, rescued_rows: saved }))
}

/// Creates a missing database. If the WAL of a removed file is still there, it is quarantined: SQLite would apply it to the new
/// file.
pub(crate) fn begin<S: Schema>(home: &Home, lock_timeout: LockTimeout) -> Result<Option<Repair>, Error> {
    home.make_directories().map_err(|error| home.error("cannot create the state directory", error))?;
    quarantine::<S>(home, lock_timeout, None)
}

/// Puts a complete fresh database in place if the process that built it was killed before it could.
pub(crate) fn finish<S: Schema>(home: &Home, lock_timeout: LockTimeout) -> Result<Option<Repair>, Error> {
    if !is_pending::<S>(home) {
        return Ok(None);
    }
    let write_lock = write_lock::acquire(home, S::LOCK, lock_timeout)?;
    if !is_pending::<S>(home) {
        return Ok(None);
    }
    let saved = count::<S>(&fresh::<S>(home));
    let aside = swap::<S>(home)?;
    drop(write_lock);
    S::after_repair(home);
    Ok(aside.map(|aside| Repair { damaged_copy: aside, rescued_rows: saved }))
}

/// Returns true if a complete fresh database is waiting to be put in place.
pub(crate) fn is_pending<S: Schema>(home: &Home) -> bool {
    fresh::<S>(home).exists()
}

/// Counts the rows of the first table; 0 if it cannot be read.
fn count<S: Schema>(file: &Path) -> usize {
    let query = format!("SELECT count(*) FROM {}", S::RESCUED_TABLES[0]);
    let count = Connection::open(file)
        .and_then(|connection| connection.query_row(&query, [], |row| row.get::<_, i64>(0)));
    count.ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Path of the complete fresh database.
fn fresh<S: Schema>(home: &Home) -> PathBuf {
    home.path().join(format!("{}.fresh", S::FILE))
}

/// Builds a fresh database from the damaged one. Returns the number of rows in its first table.
fn build<S: Schema>(home: &Home) -> Result<usize, Error> {
    let building = home.path().join(format!("{}.building", S::FILE));
    let io = |error| home.error("beginning a new database", error);
    let failed = |error| Error::database(&building, Duration::ZERO, error);
    remove_database(&building);
    OpenOptions::new().append(true).create(true).mode(0o600).open(&building).map_err(io)?;
    let mut connection = Connection::open(&building).map_err(failed)?;
    tables::make::<S>(&mut connection).map_err(failed)?;
    let damaged = home.path().join(S::FILE);
    // Without any old file this creates the first database and is not a repair.
    let is_repair = FILES.iter().any(|ending| beside(&damaged, ending).exists());
    let aside = is_repair.then(|| free_name::<S>(home));
    let saved = copy_readable_rows::<S>(home, &mut connection, &damaged, aside.as_deref()).map_err(failed)?;
    // So that there is only one file to move. Closing would also checkpoint, but would not report a full disk.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    fs::rename(&building, fresh::<S>(home)).and_then(|()| sync_directory(home.path())).map_err(io)?;
    Ok(saved)
}

/// Quarantines the damaged database and moves the fresh one into its place. Returns the path of the damaged one, if there was
/// one.
fn swap<S: Schema>(home: &Home) -> Result<Option<PathBuf>, Error> {
    let file = home.path().join(S::FILE);
    // If only the WAL is left, a swap was interrupted: it belongs to the last quarantined file.
    let aside = if file.exists() { None } else { last_damaged_without_log::<S>(home) };
    let aside = aside.unwrap_or_else(|| free_name::<S>(home));
    let swap = || {
        let moved = move_database(&file, &aside)?;
        fs::rename(fresh::<S>(home), &file)?;
        sync_directory(home.path())?;
        damage::unmark::<S>(home);
        Ok(moved)
    };
    let moved = swap().map_err(|error| home.error("setting the database aside", error))?;
    Ok(moved.then_some(aside))
}

/// Names for quarantined databases, in order of use.
fn damaged_names<S: Schema>(home: &Home) -> impl Iterator<Item = PathBuf> {
    (1..=u32::MAX).map(|number| home.path().join(format!("{}.damaged-{number}", S::FILE)))
}

fn is_free(path: &Path) -> bool {
    FILES.iter().all(|ending| !beside(path, ending).exists())
}

fn free_name<S: Schema>(home: &Home) -> PathBuf {
    damaged_names::<S>(home)
        .find(|path| is_free(path))
        .unwrap_or_else(|| home.path().join(format!("{}.damaged", S::FILE)))
}

fn last_damaged_without_log<S: Schema>(home: &Home) -> Option<PathBuf> {
    let last = damaged_names::<S>(home).take_while(|path| !is_free(path)).last();
    last.filter(|path| path.exists() && !beside(path, "-wal").exists())
}

/// Copies every readable row, and records where the damaged file will be moved to. Returns the number of rows in the first table.
fn copy_readable_rows<S: Schema>(
    home: &Home,
    fresh: &mut Connection,
    damaged: &Path,
    aside: Option<&Path>,
) -> rusqlite::Result<usize> {
    let transaction = Transaction::new(fresh, TransactionBehavior::Immediate)?;
    let saved = rescue::copy_readable_rows::<S>(home, damaged, &transaction)?;
    if let Some(aside) = aside {
        damage::note_file(&transaction, aside, saved)?;
    }
    transaction.commit()?;
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::{begin, beside, finish, fresh};
    use crate::db::damage::move_database;
    use crate::db::write_lock::LockTimeout;
    use crate::home::Home;
    use crate::journal::schema::JournalSchema;

    /// A process may be killed after each file that a swap moves. The damaged database keeps its WAL.
    #[test]
    fn an_interrupted_exchange_keeps_the_damaged_files_together() {
        for moved_files in 0..=2 {
            let directory = tempfile::tempdir().unwrap();
            let home = Home::new(directory.path());
            begin::<JournalSchema>(&home, LockTimeout::COMMAND).unwrap();
            let (file, damaged) = (home.path().join("ringer.db"), home.path().join("ringer.db.damaged-1"));
            std::fs::copy(&file, fresh::<JournalSchema>(&home)).unwrap();
            std::fs::write(&file, "damaged").unwrap();
            std::fs::write(beside(&file, "-wal"), "log").unwrap();
            for ending in ["", "-wal"].iter().take(moved_files) {
                std::fs::rename(beside(&file, ending), beside(&damaged, ending)).unwrap();
            }
            finish::<JournalSchema>(&home, LockTimeout::COMMAND).unwrap();
            assert_eq!(std::fs::read(&damaged).unwrap(), b"damaged", "{moved_files} moved");
            assert_eq!(std::fs::read(beside(&damaged, "-wal")).unwrap(), b"log", "{moved_files} moved");
            assert!(!beside(&file, "-wal").exists());
        }
    }

    /// If the WAL cannot be moved, the database is already out of the way, so no process opens it without its WAL.
    #[test]
    fn the_database_is_moved_before_its_log() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        std::fs::write(&from, "database").unwrap();
        std::fs::write(beside(&from, "-wal"), "log").unwrap();
        std::fs::create_dir(beside(&to, "-wal")).unwrap();
        move_database(&from, &to).unwrap_err();
        assert!(!from.exists() && to.exists());
    }
}
