//! Damage that a process has met: it notes that beside the file, and ends.
//!
//! From then on no process writes to the file, so nothing is acknowledged that the repair could not find. A hub that runs
//! ends, and the next one repairs the file before it opens it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::db::connection::read_index;
use crate::db::log::Log;
use crate::db::tables::Schema;
use crate::home::{Home, beside};
use crate::lock::FileId;
use crate::wake::doorbell;

fn note_path<S: Schema>(home: &Home) -> PathBuf {
    home.path().join(format!("{}.repair", S::FILE))
}

/// Notes that this file is damaged, and wakes the hub. Another file of that name is not: it was repaired meanwhile.
pub(crate) fn note<S: Schema>(home: &Home, damaged: FileId) {
    if FileId::of(&home.path().join(S::FILE)).ok() == Some(damaged) {
        // Where this cannot be written, the next process meets the damage too.
        let _ = fs::write(note_path::<S>(home), damaged.to_string());
        doorbell::wake_hub(home);
    }
}

/// Returns true if a process has met damage in the file that is there.
pub(crate) fn is_noted<S: Schema>(home: &Home) -> bool {
    let Ok(noted) = fs::read_to_string(note_path::<S>(home)) else { return false };
    FileId::of(&home.path().join(S::FILE)).is_ok_and(|file| file.to_string() == noted)
}

/// The file was repaired.
pub(crate) fn forget<S: Schema>(home: &Home) {
    // Mostly there is none.
    let _ = fs::remove_file(note_path::<S>(home));
}

/// Returns true if SQLite would drop commits from the log of a database.
pub(crate) fn is_log_damaged(database: &Path) -> bool {
    let index = read_index(database);
    Log::read(database).is_ok_and(|log| log.is_damaged(index.as_ref()))
}

/// The endings of the files of a database: the database itself, the log, and the index of the log.
pub(crate) const FILES: [&str; 3] = ["", "-wal", "-shm"];

/// Moves whichever of the files are there. The log and its index go along: the newest messages may be in them alone. They
/// go last: a process that finds the database under its name has its own log beside it.
/// Gives whether something was moved.
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

/// The length of the log beside a database.
pub(crate) fn log_length(database: &Path) -> u64 {
    beside(database, "-wal").metadata().map_or(0, |log| log.len())
}

pub(crate) fn remove_database(path: &Path) {
    for ending in FILES {
        // Mostly there is none.
        let _ = fs::remove_file(beside(path, ending));
    }
}
