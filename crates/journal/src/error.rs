//! Errors of the journal, sorted by what a person can do about them.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::message::InvalidName;
use rusqlite::{ErrorCode, ffi};

/// An error of the journal or the hub store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The home is not writable: permissions, a read-only file system, an agent's sandbox.
    #[error("cannot write to {}: {source}", path.display())]
    NotWritable {
        /// The home.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another user owns the home, can write to it or could replace it.
    #[error("the state directory is not safe: {why}")]
    UnsafeHome {
        /// The directory and the reason.
        why: io::Error,
    },
    /// The home is not a directory and cannot be created.
    #[error("{} cannot be used as the state directory: {source}", path.display())]
    NoHome {
        /// The home.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The database does not exist and was not to be created.
    #[error("{} is not there any more", path.display())]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space left in {}", path.display())]
    Full {
        /// The home.
        path: PathBuf,
    },
    /// The disk failed during a read or write.
    #[error("the disk under {} failed: {why}", path.display())]
    Failing {
        /// The home.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// Another version of Ringer wrote the database. It is left unchanged.
    #[error("{} has schema {found}, but this version of Ringer reads only {known}", path.display())]
    OtherVersion {
        /// The database.
        path: PathBuf,
        /// Schema version of the file.
        found: i64,
        /// Schema version of this program.
        known: i64,
    },
    /// Another process held the write lock for too long.
    #[error("the journal was busy for {:.1} s", waited.as_secs_f64())]
    Busy {
        /// How long this process waited.
        waited: Duration,
    },
    /// The database is damaged and was not repaired in time.
    #[error("{} is damaged", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
    },
    /// No question has this id.
    #[error("unknown question {0}")]
    NoQuestion(String),
    /// The question is already closed.
    #[error("question {id} was already closed{}", answer.as_ref().map(|answer| format!(": {answer}")).unwrap_or_default())]
    Answered {
        /// The question.
        id: String,
        /// The answer, unless it was closed without one.
        answer: Option<String>,
    },
    /// The message may not be sent under this name.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// Any other I/O error.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Any other SQLite error.
    #[error("the database {}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// The SQLite error.
        source: rusqlite::Error,
    },
}

/// Why a message cannot be sent under a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SenderError {
    /// The name is reserved for the person, for Ringer or for another agent's worker.
    #[error("{name:?} cannot be the sender of this message")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A running agent has this name, and the command does not run below it.
    #[error("{name} is an agent, and this command does not run below it")]
    OtherAgent {
        /// The agent.
        name: String,
    },
    /// The name is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
}

impl Error {
    /// Classifies an I/O error.
    pub(crate) fn io(home: &Path, what: impl Into<String>, source: io::Error) -> Self {
        use io::ErrorKind::{
            NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        match source.kind() {
            PermissionDenied | ReadOnlyFilesystem => Self::NotWritable { path: home.to_owned(), source },
            StorageFull | QuotaExceeded => Self::Full { path: home.to_owned() },
            NotADirectory => Self::NoHome { path: home.to_owned(), source },
            _ if source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Self::Failing { path: home.to_owned(), why: format!("{}: {source}", what.into()) }
            }
            _ => Self::Io { what: what.into(), source },
        }
    }

    /// Classifies an SQLite error.
    pub(crate) fn database(database: &Path, waited: Duration, source: rusqlite::Error) -> Self {
        let path = database.to_owned();
        let home = database.parent().unwrap_or(database).to_owned();
        let writable = || {
            [&home, &path]
                .iter()
                .try_for_each(|path| rustix::fs::access(path.as_path(), rustix::fs::Access::WRITE_OK))
        };
        let extended = source.sqlite_error().map(|error| error.extended_code);
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path: home },
            // The WAL index could not grow, usually because the disk is full, which SQLite does not report here.
            Some(ErrorCode::SystemIoFailure)
                if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) && !has_room(&home) =>
            {
                Self::Full { path: home }
            }
            // The file or its WAL is shorter than its header says: damage, not a disk failure.
            Some(ErrorCode::SystemIoFailure) if extended == Some(ffi::SQLITE_IOERR_SHORT_READ) => {
                Self::Corrupt { path }
            }
            Some(ErrorCode::SystemIoFailure) => Self::Failing { path: home, why: source.to_string() },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => match writable() {
                Err(error) => Self::NotWritable { path: home, source: error.into() },
                Ok(()) if forbids_writing(&path) => Self::Corrupt { path },
                // SQLite opens the WAL read-only if it cannot be opened for writing, whatever the reason.
                Ok(()) => Self::Failing { path: home, why: source.to_string() },
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { waited },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path },
            // Ringer's statements are valid for its own tables: if SQLite rejects one, the tables are not Ringer's.
            Some(ErrorCode::Unknown) if extended == Some(ffi::SQLITE_ERROR) => Self::Corrupt { path },
            None if matches!(&source, rusqlite::Error::SqlInputError { error, .. } if error.extended_code == ffi::SQLITE_ERROR) => {
                Self::Corrupt { path }
            }
            // The tables are strict, and bound values always match their columns.
            None if matches!(source, rusqlite::Error::InvalidColumnType(..)) => Self::Corrupt { path },
            Some(ErrorCode::ConstraintViolation)
                if matches!(
                    extended,
                    Some(
                        ffi::SQLITE_CONSTRAINT_DATATYPE
                            | ffi::SQLITE_CONSTRAINT_NOTNULL
                            | ffi::SQLITE_CONSTRAINT_CHECK
                    )
                ) =>
            {
                Self::Corrupt { path }
            }
            // SQLite also reports "cannot open" if the directory does not allow creating the -wal file.
            Some(ErrorCode::CannotOpen) => match rustix::fs::access(&home, rustix::fs::Access::WRITE_OK) {
                Err(error) => Self::NotWritable { path: home, source: error.into() },
                Ok(()) => Self::Database { path, source },
            },
            _ => Self::Database { path, source },
        }
    }

    /// The error for a database that SQLite could open only for reading, whatever the reason.
    pub(crate) fn only_readable(database: &Path) -> Self {
        let path = database.parent().unwrap_or(database).to_owned();
        // `access` ignores Landlock, so a file is opened. Not the database: closing it would drop this process's SQLite locks.
        let forbidden = File::options().write(true).open(path.join("write.lock")).err();
        let forbidden = forbidden.filter(|error| error.kind() != ErrorKind::NotFound);
        let forbidden = forbidden.or_else(|| {
            rustix::fs::access(database, rustix::fs::Access::WRITE_OK).err().map(io::Error::from)
        });
        match forbidden {
            Some(source) => Self::NotWritable { path, source },
            None => Self::Failing { path, why: format!("{} opens for reading only", database.display()) },
        }
    }

    /// Returns true if the same write may succeed later: the write lock is held, or the disk is full, read-only or failing.
    /// Errors caused by the data itself are permanent.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Full { .. }
                | Self::NotWritable { .. }
                | Self::Failing { .. }
                | Self::NoHome { .. }
                | Self::Io { .. }
        )
    }

    /// Returns true if the database is damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

/// Returns true if the disk has room for a few pages.
fn has_room(home: &Path) -> bool {
    const ENOUGH: u64 = 64 * 1024;
    rustix::fs::statvfs(home).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= ENOUGH)
}

/// Returns true if the file's header forbids writing: a newer file format, or damage. Called only after SQLite refused to write,
/// because closing the file drops this process's SQLite locks.
fn forbids_writing(database: &Path) -> bool {
    const WRITE_VERSION: usize = 18;
    let mut header = [0; WRITE_VERSION + 1];
    let read = File::open(database).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[WRITE_VERSION] > 2
}
