//! What can go wrong with the journal.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::message::InvalidName;
use rusqlite::{ErrorCode, ffi};

/// Why the journal could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The home may not be written: permissions, a read-only file system, an agent's sandbox.
    #[error("cannot write to {}: {source}", path.display())]
    NotWritable {
        /// The home.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another user owns the home, can write it or could exchange it.
    #[error("the state directory is not safe: {why}")]
    UnsafeHome {
        /// Which directory it is, and why.
        why: io::Error,
    },
    /// The home is no directory, and cannot be made one.
    #[error("{} cannot be used as the state directory: {source}", path.display())]
    NoHome {
        /// The home.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no database, and none was to be made.
    #[error("{} is not there any more", path.display())]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// There is no room left.
    #[error("no space left in {}", path.display())]
    Full {
        /// The home.
        path: PathBuf,
    },
    /// The disk failed while something was read or written.
    #[error("the disk under {} failed: {why}", path.display())]
    Failing {
        /// The home.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The database was written by another version of Ringer. It was not touched.
    #[error("{} has schema {found}, but this version of Ringer reads only {known}", path.display())]
    OtherVersion {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Another process held the write lock for too long.
    #[error("the journal was busy for {:.1} s", waited.as_secs_f64())]
    Busy {
        /// How long we waited.
        waited: Duration,
    },
    /// The database is damaged, and was not repaired in time.
    #[error("{} is damaged", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
    },
    /// There is no such question.
    #[error("unknown question {0}")]
    NoQuestion(String),
    /// The question was closed before.
    #[error("question {id} was already closed{}", answer.as_ref().map(|answer| format!(": {answer}")).unwrap_or_default())]
    Answered {
        /// The question.
        id: String,
        /// The answer it got.
        answer: Option<String>,
    },
    /// The message may not be sent under this name.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// Anything else the system said.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else SQLite said.
    #[error("the database {}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// Why a message cannot be sent under a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SenderError {
    /// The name stands for the person or for Ringer, or looks like that of another agent's worker.
    #[error("{name:?} cannot be the sender of this message")]
    Reserved {
        /// The name.
        name: String,
    },
    /// An agent of that name runs, and the command does not run below it.
    #[error("{name} is an agent, and this command does not run below it")]
    OtherAgent {
        /// The agent.
        name: String,
    },
    /// It is no name.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
}

impl Error {
    /// Sorts an error of the system by what a person can do about it.
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

    /// Sorts an error of SQLite likewise.
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
            // The index beside the log could not grow: mostly for want of room, which SQLite does not say here.
            Some(ErrorCode::SystemIoFailure)
                if extended == Some(ffi::SQLITE_IOERR_SHMSIZE) && !has_room(&home) =>
            {
                Self::Full { path: home }
            }
            // The file or its log is shorter than it says, which no disk does by failing.
            Some(ErrorCode::SystemIoFailure) if extended == Some(ffi::SQLITE_IOERR_SHORT_READ) => {
                Self::Corrupt { path }
            }
            Some(ErrorCode::SystemIoFailure) => Self::Failing { path: home, why: source.to_string() },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => match writable() {
                Err(error) => Self::NotWritable { path: home, source: error.into() },
                Ok(()) if forbids_writing(&path) => Self::Corrupt { path },
                // SQLite opens the log for reading where it cannot be opened for writing, whatever the reason is.
                Ok(()) => Self::Failing { path: home, why: source.to_string() },
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { waited },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path },
            // Ringer's statements do not change: one that SQLite refuses met tables that Ringer did not make.
            Some(ErrorCode::Unknown) if extended == Some(ffi::SQLITE_ERROR) => Self::Corrupt { path },
            None if matches!(&source, rusqlite::Error::SqlInputError { error, .. } if error.extended_code == ffi::SQLITE_ERROR) => {
                Self::Corrupt { path }
            }
            // The tables are strict, and every value that is bound has the type of its column.
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
            // SQLite says "cannot open" for a directory that forbids the -wal file, too.
            Some(ErrorCode::CannotOpen) => match rustix::fs::access(&home, rustix::fs::Access::WRITE_OK) {
                Err(error) => Self::NotWritable { path: home, source: error.into() },
                Ok(()) => Self::Database { path, source },
            },
            _ => Self::Database { path, source },
        }
    }

    /// SQLite opens a file for reading where it cannot be opened for writing, whatever the reason is.
    pub(crate) fn only_readable(database: &Path) -> Self {
        let path = database.parent().unwrap_or(database).to_owned();
        // `access` does not know what Landlock forbids. Not the database itself: closing it would end SQLite's locks of this process.
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

    /// Whether the same write may work later: another process holds the write lock, or the disk is full, read-only or failing. An
    /// error that the written data causes does not pass.
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

    /// Whether the database file is damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

/// Whether a few pages would fit.
fn has_room(home: &Path) -> bool {
    const ENOUGH: u64 = 64 * 1024;
    rustix::fs::statvfs(home).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= ENOUGH)
}

/// Whether the file's header forbids writing: a newer version of the format, or damage. Checked only where SQLite has refused to write, because closing the file drops SQLite's locks on it.
fn forbids_writing(database: &Path) -> bool {
    const WRITE_VERSION: usize = 18;
    let mut header = [0; WRITE_VERSION + 1];
    let read = File::open(database).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[WRITE_VERSION] > 2
}
