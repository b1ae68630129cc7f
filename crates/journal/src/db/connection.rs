//! Opens a database file, and keeps the connection open while another connection of this process shares its WAL index.
//!
//! SQLite locks the WAL index (`-shm`) for the whole process, and the kernel drops all locks of a process on a file when the
//! process closes any descriptor of that file. Two databases share an index after a copy has replaced an open file while its
//! WAL stayed. If this process read the copy while the old file is open, SQLite would not see its own locks, consider the index
//! unused and truncate it; if the old file was closed, the next process would. This process would then be killed (SIGBUS) at
//! its next access, or two writers would write at once. So such a copy is not read: the repair gives it its own WAL first.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::db::log::{INDEX_READ, LogIndex};
use crate::db::tables;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::home::beside;
use crate::lock::FileId;

/// The byte of a WAL index that every process with an open index locks (`UNIX_SHM_DMS`). The first process to lock it rebuilds
/// the index from the log.
const IN_USE_BYTE: u64 = 128;

/// A connection to a database file.
#[derive(Debug)]
pub(crate) struct FileConnection {
    /// `None` only during `drop`.
    connection: Option<Connection>,
    index: Option<IndexUse>,
}

/// The WAL index that a connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexUse {
    database: FileId,
    index: FileId,
}

/// The WAL indexes in use by this process, one entry per connection.
static IN_USE: Mutex<Vec<IndexUse>> = Mutex::new(Vec::new());

impl FileConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection: Some(connection), index: None }
    }

    /// Records which index the connection uses. Call it before the first read, because SQLite then opens the index and no other
    /// thread may close it; and again after it, because SQLite creates a missing index.
    ///
    /// Returns false if another open database of this process uses the same index. Then nothing more may be read.
    pub(crate) fn note_index(&mut self, path: &Path, database: FileId) -> bool {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = self.index.take() {
            remove(&mut in_use, before);
        }
        self.index = FileId::of(&beside(path, "-shm")).ok().map(|index| IndexUse { database, index });
        in_use.extend(self.index);
        self.index.is_none_or(|used| !is_shared(&in_use, used))
    }

    /// Closes a connection that has read nothing and therefore has not opened its index.
    pub(crate) fn close_unread(mut self) {
        if let Some(noted) = self.index.take() {
            remove(&mut IN_USE.lock().unwrap_or_else(PoisonError::into_inner), noted);
        }
    }
}

/// Reads the header of a database's WAL index.
pub(crate) fn read_index(database: &Path) -> Option<LogIndex> {
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = beside(database, "-shm");
    let file = File::open(&path).ok()?;
    let mut bytes = [0; INDEX_READ];
    let read = file.read_exact_at(&mut bytes, 0);
    if is_in_use(&in_use, &path) {
        // Closing it would drop this process's locks.
        std::mem::forget(file);
    }
    read.ok().and_then(|()| LogIndex::parse(&bytes))
}

/// Returns true if no process has the WAL index open. The next process to open the database then reads the log from the start, up
/// to the first damaged frame.
pub(crate) fn is_index_unused(database: &Path) -> bool {
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = beside(database, "-shm");
    if is_in_use(&in_use, &path) {
        return false;
    }
    let Ok(file) = File::open(&path) else { return true };
    let mut lock = Flock::from(FlockType::WriteLock);
    (lock.offset_type, lock.start, lock.length) = (FlockOffsetType::Set, IN_USE_BYTE, 1);
    fcntl_getlk(&file, &lock).is_ok_and(|held| held.is_none())
}

/// Returns true if a connection of this process uses the index.
fn is_in_use(in_use: &[IndexUse], index: &Path) -> bool {
    FileId::of(index).is_ok_and(|index| in_use.iter().any(|used| used.index == index))
}

/// Returns true if another database uses the same index.
fn is_shared(in_use: &[IndexUse], used: IndexUse) -> bool {
    in_use.iter().any(|other| other.index == used.index && other.database != used.database)
}

fn remove(in_use: &mut Vec<IndexUse>, one: IndexUse) {
    if let Some(place) = in_use.iter().position(|other| *other == one) {
        in_use.swap_remove(place);
    }
}

impl Deref for FileConnection {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "only drop takes it")]
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("open")
    }
}

impl DerefMut for FileConnection {
    #[expect(clippy::expect_used, reason = "only drop takes it")]
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("open")
    }
}

impl Drop for FileConnection {
    fn drop(&mut self) {
        let Some(used) = self.index else { return };
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        remove(&mut in_use, used);
        if is_shared(&in_use, used) {
            // Leaked until the process exits: two or three descriptors for each copy that a person puts in place.
            std::mem::forget(self.connection.take());
        } else {
            // Closed under the mutex: another thread may be about to open the same index.
            drop(self.connection.take());
        }
    }
}

/// Size of the statement cache. A commit of the hub uses about 20 statements.
const MAX_PREPARED: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An open connection and the schema version of its file.
pub(crate) struct OpenFile {
    pub(crate) connection: FileConnection,
    pub(crate) version: rusqlite::Result<i64>,
}

/// Opens a file. `None` if another file replaced it meanwhile, so that it is unclear which one is open.
pub(crate) fn connect(
    path: &Path,
    file: FileId,
    access: Access,
    lock_timeout: LockTimeout,
) -> Result<Option<OpenFile>, Error> {
    let mut connection = connect_unread(path, access, lock_timeout)?;
    if FileId::of(path).ok() != Some(file) {
        return Ok(None);
    }
    if !connection.note_index(path, file) {
        connection.close_unread();
        return Err(Error::Corrupt { path: path.to_owned() });
    }
    // Configuring the connection already reads the database.
    configure(&connection).map_err(|error| Error::database(path, lock_timeout.0, error))?;
    // Read before the check, because SQLite opens the WAL at its first read: meanwhile another process may have quarantined the
    // file and put a new one with its own WAL there.
    let version = tables::version(&connection);
    let is_own_index = connection.note_index(path, file);
    if FileId::of(path).ok() != Some(file) {
        return Ok(None);
    }
    if is_own_index {
        Ok(Some(OpenFile { connection, version }))
    } else {
        Err(Error::Corrupt { path: path.to_owned() })
    }
}

/// Opens the file without reading from it.
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
    // A smaller cache would be evicted by the different statements of a hub commit.
    connection.set_prepared_statement_cache_capacity(MAX_PREPARED);
    // Otherwise the last connection to close would checkpoint and delete the WAL: a millisecond for every lone `ringer notify`.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS, fsync does not flush the drive's cache.
    #[cfg(target_os = "macos")]
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use ringer_core::{Draft, Kind, Scope, Sender};

    use super::*;
    use crate::db::write_lock::LockTimeout;
    use crate::home::Home;
    use crate::ids::IdSource;
    use crate::journal::schema::Journal;

    /// A home whose repairs happen at once.
    fn home_in(directory: &tempfile::TempDir) -> Home {
        Home::new(directory.path()).with_hub_starter(Some(|home| drop(Journal::open_repaired(home))))
    }

    /// Returns true if this process has locked the index, as SQLite does while it uses one. Reads `/proc/self/fdinfo` of
    /// SQLite's descriptors: `/proc/locks` skips lines while other tests lock and unlock, and closing our own descriptor would
    /// drop the lock.
    fn is_locked(index: &Path) -> bool {
        let descriptors = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name());
        descriptors
            .filter(|number| {
                fs::read_link(Path::new("/proc/self/fd").join(number)).is_ok_and(|to| to == index)
            })
            .any(|number| {
                // The descriptor may have been closed by another test since.
                let facts =
                    fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)).unwrap_or_default();
                facts.lines().any(|line| line.starts_with("lock:"))
            })
    }

    /// Replaces the file with a copy, as a person does who restores a backup.
    fn replace_by_copy(home: &Home) -> PathBuf {
        let (file, copy) = (home.database(), home.path().join("copy"));
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
        beside(&file, "-shm")
    }

    /// Closing the old file used to drop the locks on the index of the new one.
    #[test]
    fn the_index_stays_locked_when_a_copy_takes_the_place_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(&directory);
        let mut journals: Vec<Journal> = (0..3).map(|_| Journal::open(&home).unwrap()).collect();
        for _ in 0..3 {
            let index = replace_by_copy(&home);
            for journal in &mut journals {
                journal.refresh().unwrap();
                assert!(is_locked(&index));
            }
        }
    }

    /// Closing releases the descriptors unless another file shares the index.
    #[test]
    fn the_last_one_to_be_closed_unlocks_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(&directory);
        let journals = (Journal::open(&home).unwrap(), Journal::open(&home).unwrap());
        let index = beside(&home.database(), "-shm");
        drop(journals.0);
        assert!(is_locked(&index));
        drop(journals.1);
        assert!(!is_locked(&index));
    }

    /// Reading the copy used to truncate the index of the open file, and the next access killed this process.
    #[test]
    fn a_copy_in_the_place_of_an_open_file_gets_an_index_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(&directory);
        let mut journal = Journal::open(&home).unwrap();
        append(&mut journal, "before");
        let index = replace_by_copy(&home);
        let (shared, length) = FileId::of(&index).map(|index| (index, index.length())).unwrap();
        let mut other = Journal::open(&home).unwrap();
        let kept = &other.repair().expect("it is taken for damaged").damaged_copy;
        let moved = FileId::of(&beside(kept, "-shm")).unwrap();
        assert_eq!((moved, moved.length()), (shared, length));
        assert_ne!(FileId::of(&index).unwrap(), shared);
        append(&mut other, "after");
        journal.refresh().unwrap();
        assert_eq!(journal.messages_after(0, usize::MAX).unwrap().len(), 2);
    }

    /// Each copy that could not be repaired yet, because another process was writing, used to leak a descriptor.
    #[test]
    fn a_copy_that_is_refused_leaves_nothing_open() {
        let directory = tempfile::tempdir().unwrap();
        let home = home_in(&directory);
        let mut journal = Journal::open(&home).unwrap();
        replace_by_copy(&home);
        let open = || {
            let names = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
            names.filter_map(|name| fs::read_link(name).ok()).filter(|to| to.starts_with(home.path())).count()
        };
        let before = open();
        for _ in 0..5 {
            assert!(Journal::open_without_repair(&home, LockTimeout::NONE).is_err());
        }
        assert_eq!(open(), before);
        journal.refresh().unwrap();
    }

    fn append(journal: &mut Journal, text: &str) {
        let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, text).unwrap();
        journal.append(&draft, &IdSource::now()).unwrap();
    }
}
