//! Opens a database file, and makes sure that it is the one of its name.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use crate::db::connection::FileConnection;
use crate::db::tables;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::lock::FileId;

/// Statements that stay prepared. A commit of the hub has about 20.
const MAX_PREPARED: usize = 64;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A file that was opened, and its version.
pub(crate) struct Connected {
    pub(crate) connection: FileConnection,
    pub(crate) version: rusqlite::Result<i64>,
}

/// Opens this file. `None` if another one has taken its name meanwhile: it may be that one that is open.
pub(crate) fn connect(
    path: &Path,
    file: FileId,
    access: Access,
    lock_timeout: LockTimeout,
) -> Result<Option<Connected>, Error> {
    let mut connection = connect_unread(path, access, lock_timeout)?;
    if FileId::of(path).ok() != Some(file) {
        return Ok(None);
    }
    if !connection.note_index(path, file) {
        connection.close_unread();
        return Err(Error::Corrupt { path: path.to_owned() });
    }
    // Settings of a connection read the database, too.
    configure(&connection).map_err(|error| Error::database(path, lock_timeout.0, error))?;
    // Read before the check, because SQLite opens the log when it first reads: a process that quarantined the file
    // in the meantime may have put another one and its log there.
    let version = tables::version(&connection);
    let is_own_index = connection.note_index(path, file);
    if FileId::of(path).ok() != Some(file) {
        return Ok(None);
    }
    if is_own_index {
        Ok(Some(Connected { connection, version }))
    } else {
        Err(Error::Corrupt { path: path.to_owned() })
    }
}

/// Opens the file, and reads nothing of it.
fn connect_unread(path: &Path, access: Access, lock_timeout: LockTimeout) -> Result<FileConnection, Error> {
    let failed = |error| Error::database(path, lock_timeout.0, error);
    let flags = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = FileConnection::new(Connection::open_with_flags(path, flags).map_err(failed)?);
    if access == Access::Write && connection.is_readonly(MAIN_DB).map_err(failed)? {
        return Err(Error::only_readable(path));
    }
    connection.busy_timeout(lock_timeout.0).map_err(failed)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // More than one commit of the hub has different ones: with fewer, each would be parsed again every time.
    connection.set_prepared_statement_cache_capacity(MAX_PREPARED);
    // The last one to close would copy the whole log into the database and delete it: a millisecond that every lone
    // `ringer notify` would pay.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // There, fsync leaves the drive's own cache alone.
    #[cfg(target_os = "macos")]
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}
