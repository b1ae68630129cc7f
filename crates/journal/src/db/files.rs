//! The files of one database.

use std::fs;
use std::path::Path;

use crate::home::beside;

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
