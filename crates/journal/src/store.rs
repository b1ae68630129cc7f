//! One SQLite file of the home: opening it, taking turns at writing it, and beginning it anew when it is damaged.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use crate::error::Error;
use crate::home::{Home, beside, sync_directory};
use crate::lock::FileNumber;
use crate::repair::{self, Repair};
use crate::schema;
use crate::turn::{self, Patience};

/// What one of the files is: its name, its tables, and what is special about it.
pub trait Form: Debug + Default {
    /// The name of the file in the home.
    const FILE: &'static str;
    /// The lock that its writers take in turn. A file of its own: closing another descriptor of the database would drop
    /// SQLite's locks.
    const LOCK: &'static str;
    /// The definitions of its tables, as an empty file gets them.
    const TABLES: &'static [&'static str];
    /// What makes the next version out of an older file, beginning with version 1. A step is never changed once it was
    /// released; a new version adds one, and changes a table: by its tables a newer file is told from a damaged number.
    const STEPS: &'static [&'static [&'static str]];
    /// The tables worth saving from a damaged file, the one whose rows are counted first.
    const SAVED: &'static [&'static str];

    /// What has to be done before an older file is brought up to date.
    fn before_migration(_home: &Home, _connection: &Connection, _version: i64) -> Result<(), Error> {
        Ok(())
    }

    /// What is left to do once every row that could be read is in the fresh file.
    fn after_rescue(_fresh: &Transaction<'_>, _damaged: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }

    /// Whether no further row can be numbered, which SQLite reports as a full disk. Only damage counts so far.
    fn is_exhausted(_connection: &Connection) -> bool {
        false
    }

    /// What is left to do once the fresh file is in its place.
    fn after_repair(_home: &Home) {}
}

/// An open file of that form.
#[derive(Debug)]
pub struct Store<F> {
    pub(crate) home: Home,
    connection: Connection,
    /// The file that was opened, to notice when another one has taken its name. Only its number, and not a descriptor:
    /// closing one would drop the locks that SQLite holds on the file.
    file: FileNumber,
    patience: Patience,
    /// Whether a damaged file is set aside. A hook does not: that takes longer than its agent may wait.
    repairs: bool,
    repair: Option<Repair>,
    /// Another file was opened in the place of this one since the last question.
    reopened: bool,
    /// What an open file of this form knows besides.
    pub(crate) own: F,
}

/// No version of Ringer will have so many schemas: a number above it is damage.
const IMPLAUSIBLE: i64 = 1000;

/// How long to wait for processes that have a file open whose log is off: each reads for a moment only, unless it believes
/// that the log is on.
const TURN_LOG_ON_WITHIN: Duration = Duration::from_millis(100);

/// The size of the log from which on it is copied into the database and emptied. Whoever opens the file when nobody
/// else has it open reads the whole log, so it is kept short.
const LONG_LOG: u64 = 512 * 1024;

impl<F: Form> Store<F> {
    /// Opens the file, making it if there is none. A damaged one is set aside and a fresh one begun with what could be
    /// read; [`Store::repair`] tells.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Self::open_with(home, Patience::COMMAND)
    }

    /// Opens the file with another patience.
    pub fn open_with(home: &Home, patience: Patience) -> Result<Self, Error> {
        let file = FileNumber::of(&Self::path(home)).ok();
        match Self::open_sound(home, patience) {
            Err(error) if error.is_corruption() => Self::open_repaired(home, patience, file),
            opened => opened,
        }
    }

    /// Opens the file for a hook: a damaged one stays as it is, for a process that has the time to repair it.
    pub fn open_without_repair(home: &Home, patience: Patience) -> Result<Self, Error> {
        let mut store = Self::open_sound(home, patience)?;
        store.repairs = false;
        Ok(store)
    }

    /// Sets the damaged file aside, unless somebody has done it already, and opens what is there then.
    fn open_repaired(home: &Home, patience: Patience, damaged: Option<FileNumber>) -> Result<Self, Error> {
        let repair = repair::set_aside::<F>(home, patience, damaged)?;
        let mut store = Self::open_sound(home, patience)?;
        store.repair = repair.or(store.repair);
        Ok(store)
    }

    /// Opens the file if there is one, and makes nothing.
    pub fn open_existing(home: &Home) -> Result<Option<Self>, Error> {
        Self::open_existing_with(home, Patience::COMMAND)
    }

    /// The same with another patience.
    pub fn open_existing_with(home: &Home, patience: Patience) -> Result<Option<Self>, Error> {
        home.check_owner()?;
        if Self::path(home).exists() { Self::open_with(home, patience).map(Some) } else { Ok(None) }
    }

    /// Where the file is.
    fn path(home: &Home) -> PathBuf {
        home.path().join(F::FILE)
    }

    /// What was done to a damaged file when this one was opened, or since.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Takes what [`Store::repair`] tells, so that it is told once.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.repair.take()
    }

    /// Whether another file was opened in the place of this one since the last question: it was set aside or exchanged, by
    /// this process or another one.
    pub fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.reopened)
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The file that is open, to notice a change.
    pub(crate) fn file(&self) -> FileNumber {
        self.file
    }

    /// Whether the file of that name is still the one we have open. It is not after somebody set a damaged one aside.
    pub fn is_current(&self) -> bool {
        FileNumber::of(&Self::path(&self.home)).ok() == Some(self.file)
    }

    /// Opens the file of that name anew if it is another one by now.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if self.is_current() {
            return Ok(());
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let open = if self.repairs { Self::open_with } else { Self::open_without_repair };
        *self = open(&self.home, self.patience)?;
        self.reopened = true;
        Ok(())
    }

    /// Does something while waiting for other writers for another time.
    pub fn within<T>(&mut self, patience: Patience, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.set_patience(patience);
        let done = work(self);
        self.set_patience(before);
        done
    }

    fn set_patience(&mut self, patience: Patience) -> Patience {
        // It only sets a number in the connection; where it fails, the old one holds.
        let _ = self.connection.busy_timeout(patience.0);
        std::mem::replace(&mut self.patience, patience)
    }

    fn open_sound(home: &Home, patience: Patience) -> Result<Self, Error> {
        home.check_owner()?;
        let path = Self::path(home);
        let mut repair = repair::finish::<F>(home, patience)?;
        let (file, connection) = loop {
            let file = match FileNumber::of(&path) {
                // A new file is given its name when its tables are in it, so this one was emptied.
                Ok(file) if file.is_empty() => return Err(Error::Corrupt { path }),
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    repair = repair::begin::<F>(home, patience)?.or(repair);
                    continue;
                }
                Err(error) => return Err(home.error("looking for the database", error)),
            };
            let connection = connect(&path, patience)?;
            // Set aside between our look and our opening: look again.
            if FileNumber::of(&path).ok() == Some(file) {
                break (file, connection);
            }
        };
        let mut store = Self {
            home: home.clone(),
            connection,
            file,
            patience,
            repairs: true,
            repair,
            reopened: false,
            own: F::default(),
        };
        let version = schema::version(&store.connection).map_err(|error| store.error(error))?;
        let known = schema::newest::<F>();
        if version > IMPLAUSIBLE {
            return Err(Error::Corrupt { path });
        }
        if version > known {
            // Every step changes a table, so one of these versions with these tables has a damaged number.
            let own = schema::is_own::<F>(&store.connection).map_err(|error| store.error(error))?;
            return Err(if own {
                Error::Corrupt { path }
            } else {
                Error::Newer { path, found: version, known }
            });
        }
        if version < known {
            let turn = turn::take::<F>(home, patience)?;
            F::before_migration(home, &store.connection, version)?;
            schema::migrate::<F>(&mut store.connection).map_err(|error| store.error(error))?;
            sync_directory(home.path()).map_err(|error| home.error("syncing the home", error))?;
            drop(turn);
        }
        store.keep_log()?;
        Ok(store)
    }

    /// Turns the log on where it is off, as in a copy that another program made and that was put in the place of the file.
    fn keep_log(&mut self) -> Result<(), Error> {
        if schema::has_log(&self.connection).map_err(|error| self.error(error))? {
            return Ok(());
        }
        let _turn = turn::take::<F>(&self.home, self.patience)?;
        let turned_on = self.connection.busy_timeout(TURN_LOG_ON_WITHIN);
        let turned_on = turned_on.and_then(|()| schema::turn_log_on(&self.connection));
        match turned_on.map_err(|error| self.error(error)) {
            // A process that had the file open before it was exchanged keeps it from being changed.
            Err(Error::Busy { .. }) => return Err(Error::Corrupt { path: Self::path(&self.home) }),
            done => done?,
        }
        self.connection.busy_timeout(self.patience.0).map_err(|error| self.error(error))
    }

    /// Looks something up. A damaged file is set aside on the way, and the fresh one looked at.
    pub(crate) fn read<T>(&mut self, look: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.healing(|store| look(&store.connection).map_err(|error| store.error(error)))
    }

    /// Does something with the file. If it turns out to be damaged, it is set aside, and the thing is done once more,
    /// with the fresh one. Only for [`Store::read`] and [`Store::write`], through which everything goes.
    fn healing<T>(&mut self, mut work: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        match work(self) {
            Err(error) if self.is_damaged(&error) && self.repairs => {
                *self = Self::open_repaired(&self.home, self.patience, Some(self.file))?;
                self.reopened = true;
                work(self)
            }
            done => done,
        }
    }

    fn is_damaged(&self, error: &Error) -> bool {
        error.is_corruption() || (matches!(error, Error::Full { .. }) && F::is_exhausted(&self.connection))
    }

    /// Runs a change in a transaction of its own, in turn with all other writers. When this returns, it is on disk.
    pub(crate) fn write<T>(
        &mut self,
        change: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.healing(|store| store.write_once(&change))
    }

    fn write_once<T>(
        &mut self,
        change: &impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let turn = turn::take::<F>(&self.home, self.patience)?;
        // Under the lock: nobody sets the file aside now.
        if repair::is_pending::<F>(&self.home) || !self.is_current() {
            drop(turn);
            self.reopen()?;
            return self.write_once(change);
        }
        let path = Self::path(&self.home);
        let log = beside(&path, "-wal");
        let failed = |error| Error::database(&path, self.patience.0, error);
        let had_log = log.exists();
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if !had_log {
            // A log that was just made is synced, but its name is not.
            sync_directory(self.home.path()).map_err(|error| self.home.error("syncing the home", error))?;
        }
        if log.metadata().is_ok_and(|metadata| metadata.len() > LONG_LOG) {
            self.empty_log();
        }
        drop(turn);
        Ok(changed)
    }

    /// Empties a log that has become long. By hand, because SQLite's own way never lets it start over when every writer
    /// opens the file anew. Nobody is waited for: while somebody reads, it is left for the next writer.
    fn empty_log(&self) {
        if self.connection.busy_timeout(Duration::ZERO).is_ok() {
            // Whether it worked or not, the change itself is on disk.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(self.patience.0);
        }
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::database(&Self::path(&self.home), self.patience.0, source)
    }
}

fn connect(path: &std::path::Path, patience: Patience) -> Result<Connection, Error> {
    let failed = |error| Error::database(path, patience.0, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    if connection.is_readonly(MAIN_DB).map_err(failed)? {
        return Err(Error::only_readable(path));
    }
    connection.busy_timeout(patience.0).map_err(failed)?;
    // The last one to close would copy the whole log into the database and delete it: a millisecond that every lone
    // `ringer notify` would pay.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    // There, fsync leaves the drive's own cache alone.
    #[cfg(target_os = "macos")]
    connection.pragma_update(None, "fullfsync", true).map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;
    Ok(connection)
}
