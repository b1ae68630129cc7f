//! Opening the journal, and taking turns at writing it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::doorbell;
use crate::error::Error;
use crate::home::{Home, sync_directory};
use crate::lock::FileNumber;
use crate::repair::{self, Repair};
use crate::schema;
use crate::turn::{self, Patience};

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    pub(crate) home: Home,
    pub(crate) connection: Connection,
    /// The file that was opened, to notice when another one has taken its name. Only its number, and not a descriptor:
    /// closing one would drop the locks that SQLite holds on the file.
    file: FileNumber,
    patience: Patience,
    repair: Option<Repair>,
    hub_heard: bool,
}

/// The size of the log from which on it is copied into the database and emptied. Whoever opens the journal when nobody
/// else has it open reads the whole log, so it is kept short.
const LONG_LOG: u64 = 512 * 1024;

impl Journal {
    /// Opens the journal, making it if there is none. A damaged one is set aside and a fresh one begun with what could
    /// be read; [`Journal::repair`] tells.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Self::open_with(home, Patience::COMMAND)
    }

    /// Opens the journal with another patience.
    pub fn open_with(home: &Home, patience: Patience) -> Result<Self, Error> {
        let file = FileNumber::of(&home.database()).ok();
        match Self::open_sound(home, patience) {
            Err(error) if error.is_corruption() => Self::open_repaired(home, patience, file),
            opened => opened,
        }
    }

    /// Sets the damaged file aside, unless somebody has done it already, and opens what is there then.
    fn open_repaired(home: &Home, patience: Patience, damaged: Option<FileNumber>) -> Result<Self, Error> {
        let repair = repair::set_aside(home, patience, damaged)?;
        let mut journal = Self::open_sound(home, patience)?;
        journal.repair = repair.or(journal.repair);
        Ok(journal)
    }

    /// Opens the journal if there is one, and makes nothing.
    pub fn open_existing(home: &Home) -> Result<Option<Self>, Error> {
        home.check_owner()?;
        if home.database().exists() { Self::open(home).map(Some) } else { Ok(None) }
    }

    /// What was done to a damaged database when this journal was opened, or since.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Rings those who wait, and the hub. To be done once the change is on disk, and not before.
    pub(crate) fn ring(&mut self, bells: &[String]) {
        doorbell::ring_all(&self.home, bells);
        self.ring_hub();
    }

    /// Rings the hub alone: something changed that only it looks at.
    pub(crate) fn ring_hub(&mut self) {
        self.hub_heard = doorbell::ring(&doorbell::named(&self.home, doorbell::HUB));
    }

    /// Whether a hub was there to hear of the last change. If not, somebody has to start one.
    pub fn hub_heard(&self) -> bool {
        self.hub_heard
    }

    /// The file that is open, to notice a change.
    pub(crate) fn file(&self) -> FileNumber {
        self.file
    }

    /// Takes what [`Journal::repair`] tells, so that it is told once.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.repair.take()
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Whether the file of that name is still the one we have open. It is not after somebody set a damaged one aside.
    pub fn is_current(&self) -> bool {
        FileNumber::of(&self.home.database()).ok() == Some(self.file)
    }

    /// Opens the file of that name anew if it is another one by now.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if self.is_current() {
            return Ok(());
        }
        *self = Self::open_with(&self.home, self.patience)?;
        Ok(())
    }

    fn open_sound(home: &Home, patience: Patience) -> Result<Self, Error> {
        home.check_owner()?;
        let repair = repair::finish(home, patience)?;
        let (file, connection) = loop {
            let file = match FileNumber::of(&home.database()) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    home.create()?;
                    continue;
                }
                Err(error) => return Err(home.error("looking for the database", error)),
            };
            let connection = connect(home, patience)?;
            // Set aside between our look and our opening: look again.
            if FileNumber::of(&home.database()).ok() == Some(file) {
                break (file, connection);
            }
        };
        let mut journal = Self { home: home.clone(), connection, file, patience, repair, hub_heard: false };
        let version = schema::version(&journal.connection).map_err(|error| journal.error(error))?;
        if version > schema::VERSION {
            return Err(Error::Newer { path: home.database(), found: version, known: schema::VERSION });
        }
        if version < schema::VERSION {
            let turn = turn::take(home, patience)?;
            schema::migrate(&mut journal.connection).map_err(|error| journal.error(error))?;
            sync_directory(home.path()).map_err(|error| home.error("syncing the home", error))?;
            drop(turn);
        }
        Ok(journal)
    }

    /// Does something with the journal. If the database turns out to be damaged, it is set aside, and the thing is done
    /// once more, with the fresh one.
    pub fn healing<T>(&mut self, mut work: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        match work(self) {
            Err(error) if error.is_corruption() => {
                *self = Self::open_repaired(&self.home, self.patience, Some(self.file))?;
                work(self)
            }
            done => done,
        }
    }

    /// Runs a change in a transaction of its own, in turn with all other writers. When this returns, it is on disk.
    pub(crate) fn write<T>(
        &mut self,
        change: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.healing(|journal| journal.write_once(&change))
    }

    fn write_once<T>(
        &mut self,
        change: &impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let turn = turn::take(&self.home, self.patience)?;
        // Under the lock: nobody sets the file aside now.
        if repair::is_pending(&self.home) || !self.is_current() {
            drop(turn);
            *self = Self::open_with(&self.home, self.patience)?;
            return self.write_once(change);
        }
        let database = self.home.database();
        let failed = |error| Error::database(&database, self.patience.0, error);
        let had_log = self.home.log().exists();
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if !had_log {
            // A log that was just made is synced, but its name is not.
            sync_directory(self.home.path()).map_err(|error| self.home.error("syncing the home", error))?;
        }
        self.shorten_log();
        drop(turn);
        Ok(changed)
    }

    /// Empties a log that has become long. By hand, because SQLite's own way never lets it start over when every writer
    /// opens the journal anew. Nobody is waited for: while somebody reads, it is left for the next writer.
    fn shorten_log(&self) {
        let is_long = self.home.log().metadata().is_ok_and(|metadata| metadata.len() > LONG_LOG);
        if is_long && self.connection.busy_timeout(Duration::ZERO).is_ok() {
            // Whether it worked or not, the change itself is on disk.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(self.patience.0);
        }
    }

    pub(crate) fn error(&self, source: rusqlite::Error) -> Error {
        Error::database(&self.home.database(), self.patience.0, source)
    }
}

fn connect(home: &Home, patience: Patience) -> Result<Connection, Error> {
    let path: PathBuf = home.database();
    let failed = |error| Error::database(&path, patience.0, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(failed)?;
    connection.busy_timeout(patience.0).map_err(failed)?;
    // The last one to close would copy the whole log into the database and delete it: a millisecond that every lone
    // `ringer notify` would pay.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;
    Ok(connection)
}
