//! Marks a database as damaged, and moves and removes its files.
//!
//! A process that detects damage writes a marker beside the file. From then on no process writes to the file, so nothing is
//! acknowledged that the repair would miss. The running hub exits, and the next one repairs the file before it opens it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::db::connection::read_index;
use crate::db::log::Log;
use crate::db::tables::Schema;
use crate::home::{Home, beside};
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
