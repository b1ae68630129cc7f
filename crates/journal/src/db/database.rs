//! An open database file of the home: opens it, serialises its writers, and handles damage.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{io, thread};

use ringer_platform::sync_directory;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::db::connection::{Access, FileConnection, OpenFile, connect, is_index_unused};
use crate::db::damage::{self, Damage, RepairRecord};
use crate::db::repair::{self, Repair};
use crate::db::tables::{self, Schema};
use crate::db::write_lock::{self, LockTimeout, WaitPolicy};
use crate::error::Error;
use crate::home::{Home, beside};
use crate::lock::FileId;

/// An open database file of one schema.
#[derive(Debug)]
pub struct Database<S> {
    pub(crate) home: Home,
    connection: FileConnection,
    /// Identity of the open file, to notice when it is replaced. Not a descriptor: closing one would drop SQLite's locks on the
    /// file.
    file: FileId,
    wait_policy: WaitPolicy,
    if_missing: IfMissing,
    /// False for hooks: a repair takes longer than an agent may wait.
    waits_for_repair: bool,
    repair: Option<Repair>,
    /// This process found damage that is not repaired.
    is_damaged: bool,
    /// The file was replaced and reopened since the last `take_reopened`.
    reopened: bool,
    /// State of the schema for this open file.
    pub(crate) schema: S,
}

/// What to do if the file does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Make,
    Fail,
}

/// A version above this is damage: no release of Ringer will have that many schemas.
const MAX_PLAUSIBLE_VERSION: i64 = 1000;

/// How long to wait for processes with an open file that is not in WAL mode. Each reads only for a moment, unless it believes
/// that WAL mode is on.
const TURN_LOG_ON_WITHIN: Duration = Duration::from_millis(100);

/// Length of the WAL above which a writer checkpoints and truncates it. The first process to open the file has to read the whole
/// WAL, often `ringer notify`.
const TRUNCATE_LOG_ABOVE: u64 = 512 * 1024;

/// `cache_size` of a long-lived process; negative means KiB. The hub re-reads only the end of its tables, and SQLite's default of
/// 2 MiB per file would be a tenth of its memory.
const LOOP_CACHE: i64 = -256;

/// How many repairs are tried before damage is an error. One is enough unless another process replaces the file at the same time.
const MAX_REPAIRS: usize = 3;

impl<S: Schema> Database<S> {
    /// Opens the file, creating it if necessary. If it is damaged, starts a hub to repair it and waits, provided that the home
    /// has a hub starter ([`Home::with_hub_starter`]); otherwise returns an error.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Self::open_with(home, LockTimeout::COMMAND)
    }

    /// Opens the file with another lock timeout, which also limits the wait for a repair.
    pub fn open_with(home: &Home, lock_timeout: LockTimeout) -> Result<Self, Error> {
        Self::open_waiting(home, lock_timeout, IfMissing::Make)
    }

    fn open_waiting(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        match Self::open_or_mark(home, lock_timeout, if_missing) {
            Err(error) if error.is_corruption() => {
                Self::open_after_repair(home, lock_timeout, if_missing, error)
            }
            opened => opened,
        }
    }

    /// Opens the file for a hook, without waiting for a repair.
    pub fn open_without_repair(home: &Home, lock_timeout: LockTimeout) -> Result<Self, Error> {
        let mut database = Self::open_or_mark(home, lock_timeout, IfMissing::Make)?;
        database.waits_for_repair = false;
        Ok(database)
    }

    /// Opens the file. Marks it if it is damaged.
    fn open_or_mark(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        let file = FileId::of(&Self::path(home)).ok();
        let opened = Self::open_undamaged(home, lock_timeout, if_missing);
        if let (Some(file), Err(error)) = (file, &opened)
            && error.is_corruption()
        {
            damage::mark::<S>(home, file);
        }
        opened
    }

    /// Opens the file if it exists. Never creates it, not even later: a write fails once the file is gone.
    pub fn open_existing(home: &Home) -> Result<Option<Self>, Error> {
        Self::open_existing_with(home, LockTimeout::COMMAND)
    }

    /// The same with another lock timeout.
    fn open_existing_with(home: &Home, lock_timeout: LockTimeout) -> Result<Option<Self>, Error> {
        match Self::open_waiting(home, lock_timeout, IfMissing::Fail) {
            Err(Error::Missing { .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Opens the file for reading if it exists, even in a home that is not writable. There, a file that needs a repair or has
    /// another version is an error.
    pub fn open_to_read(home: &Home) -> Result<Option<Self>, Error> {
        Self::open_to_read_with(home, LockTimeout::COMMAND)
    }

    /// The same with another lock timeout.
    pub fn open_to_read_with(home: &Home, lock_timeout: LockTimeout) -> Result<Option<Self>, Error> {
        match Self::open_existing_with(home, lock_timeout) {
            Err(error @ Error::NotWritable { .. }) => {
                Self::open_read_only(home, lock_timeout).map(Some).ok_or(error)
            }
            opened => opened,
        }
    }

    /// Makes an empty database in memory, in place of a file that does not exist. It is only for reading, and stays
    /// empty if the file is created.
    pub fn in_memory(home: &Home) -> Result<Self, Error> {
        let failed = |error| Error::database(&Self::path(home), LockTimeout::COMMAND.0, error);
        let connection = tables::in_memory::<S>().map_err(failed)?;
        Ok(Self::with(home, (FileId::none(), FileConnection::new(connection)), LockTimeout::COMMAND))
    }

    fn open_read_only(home: &Home, lock_timeout: LockTimeout) -> Option<Self> {
        let path = Self::path(home);
        let file = FileId::of(&path).ok().filter(|_| !repair::is_pending::<S>(home))?;
        let connected = connect(&path, file, Access::Read, lock_timeout).ok().flatten()?;
        let is_current = connected.version.is_ok_and(|version| version == tables::VERSION);
        let mut database = Self::with(home, (file, connected.connection), lock_timeout);
        database.waits_for_repair = false;
        is_current.then_some(database)
    }

    fn with(home: &Home, (file, connection): (FileId, FileConnection), lock_timeout: LockTimeout) -> Self {
        Self {
            home: home.clone(),
            connection,
            file,
            wait_policy: WaitPolicy::new(lock_timeout),
            if_missing: IfMissing::Fail,
            waits_for_repair: true,
            repair: None,
            is_damaged: false,
            reopened: false,
            schema: S::default(),
        }
    }

    fn path(home: &Home) -> PathBuf {
        home.path().join(S::FILE)
    }

    /// The repair that happened when the file was opened, or since.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Takes the result of [`Database::repair`], so that it is reported once.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.repair.take()
    }

    /// Returns true if the file was replaced and reopened since the last call.
    pub fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.reopened)
    }

    /// The home that contains the file.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Identity of the open file.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Returns false if the file was replaced, as by a repair.
    pub fn is_current(&self) -> bool {
        self.file == FileId::none() || FileId::of(&Self::path(&self.home)).ok() == Some(self.file)
    }

    /// Returns true if unrepaired damage was found. A process with such a file open has to exit.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Returns true if the file was replaced and reopened; see [`Self::take_reopened`].
    pub fn is_reopened(&self) -> bool {
        self.reopened
    }

    /// Reopens the file if it was replaced. Fails, or waits for the repair, if it is marked as damaged.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if damage::is_marked::<S>(&self.home) {
            return self.wait_for_repair(Error::Corrupt { path: Self::path(&self.home) });
        }
        if self.is_current() {
            return Ok(());
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let open = if self.waits_for_repair { Self::open_waiting } else { Self::open_or_mark };
        let opened = open(&self.home, self.wait_policy.timeout(), self.if_missing);
        self.is_damaged |= matches!(&opened, Err(error) if error.is_corruption());
        self.replace_by(opened?);
        Ok(())
    }

    fn replace_by(&mut self, opened: Self) {
        let (wait_policy, waits_for_repair) = (self.wait_policy, self.waits_for_repair);
        *self = Self { wait_policy, reopened: true, waits_for_repair, ..opened };
    }

    /// From now on, waits for the write lock as an event loop does: for the timeout at most, and after that not again within the
    /// pause, during which writes fail at once with [`Error::Busy`].
    pub fn wait_as_loop(&mut self, timeout: LockTimeout, pause: Duration) {
        self.set_lock_timeout(timeout);
        self.wait_policy = WaitPolicy::of_loop(timeout, pause);
        // If this fails, the cache is larger.
        let _ = self.connection.pragma_update(None, "cache_size", LOOP_CACHE);
    }

    /// From now on, waits for the write lock as a command does, for the time after an event loop.
    pub fn wait_as_command(&mut self) {
        self.set_lock_timeout(LockTimeout::COMMAND);
        self.wait_policy = WaitPolicy::new(LockTimeout::COMMAND);
    }

    /// Runs `work` with another lock timeout.
    pub fn with_lock_timeout<T>(
        &mut self,
        lock_timeout: LockTimeout,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.set_lock_timeout(lock_timeout);
        let done = work(self);
        self.set_lock_timeout(before);
        done
    }

    fn set_lock_timeout(&mut self, lock_timeout: LockTimeout) -> LockTimeout {
        // If this fails, the old timeout stays.
        let _ = self.connection.busy_timeout(lock_timeout.0);
        self.wait_policy.set_timeout(lock_timeout)
    }

    fn open_undamaged(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        home.check_owner()?;
        let path = Self::path(home);
        if damage::is_marked::<S>(home) {
            return Err(Error::Corrupt { path });
        }
        let mut repair = repair::finish::<S>(home, lock_timeout)?;
        let (file, OpenFile { connection, version }) = loop {
            let file = match FileId::of(&path) {
                // A new file gets its name when its tables exist, so this one was truncated.
                Ok(file) if file.is_empty() => return Err(Error::Corrupt { path }),
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if if_missing == IfMissing::Fail && !repair::is_pending::<S>(home) {
                        return Err(Error::Missing { path });
                    }
                    repair = repair::begin::<S>(home, lock_timeout)?.or(repair);
                    continue;
                }
                Err(error) => return Err(home.error("looking for the database", error)),
            };
            // SQLite would silently drop everything after the damage.
            if is_index_unused(&path)
                && damage::is_log_damaged(&path)
                && Self::is_log_damaged(home, lock_timeout)?
            {
                return Err(Error::Corrupt { path });
            }
            if let Some(connected) = connect(&path, file, Access::Write, lock_timeout)? {
                break (file, connected);
            }
        };
        let mut database = Self { if_missing, repair, ..Self::with(home, (file, connection), lock_timeout) };
        let version = version.map_err(|error| database.error(error))?;
        if version != tables::VERSION {
            // If the tables are those of this version, the version number itself is damaged.
            let is_damaged = !(1..=MAX_PLAUSIBLE_VERSION).contains(&version)
                || tables::is_own::<S>(&database.connection).map_err(|error| database.error(error))?;
            return Err(if is_damaged {
                Error::Corrupt { path }
            } else {
                Error::OtherVersion { path, found: version, known: tables::VERSION }
            });
        }
        database.ensure_log()?;
        Ok(database)
    }

    /// Turns WAL mode on if it is off, as in a copy that another program made.
    fn ensure_log(&mut self) -> Result<(), Error> {
        if tables::has_log(&self.connection).map_err(|error| self.error(error))? {
            return Ok(());
        }
        let _write_lock = self.wait_policy.acquire(&self.home, S::LOCK)?;
        let turned_on = self.connection.busy_timeout(TURN_LOG_ON_WITHIN);
        let turned_on = turned_on.and_then(|()| tables::turn_log_on(&self.connection));
        match turned_on.map_err(|error| self.error(error)) {
            // Another process has the file open and prevents the change: treat it as damaged, so that it is replaced.
            Err(Error::Busy { .. }) => return Err(Error::Corrupt { path: Self::path(&self.home) }),
            done => done?,
        }
        self.connection.busy_timeout(self.wait_policy.timeout().0).map_err(|error| self.error(error))
    }

    /// Runs a query; see [`Self::until_damage`].
    pub(crate) fn read<T>(&mut self, look: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.until_damage(|database| look(&database.connection).map_err(|error| database.error(error)))
    }

    /// Runs `work`. If the file is damaged, marks it, waits for the repair if allowed, and runs `work` again on the repaired
    /// file. Every access goes through this, by [`Database::read`] or [`Database::write`].
    fn until_damage<T>(&mut self, mut work: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        for _ in 0..MAX_REPAIRS {
            match work(self) {
                Err(error) if self.is_damage(&error) => {
                    self.wait_for_repair(Error::Corrupt { path: Self::path(&self.home) })?;
                }
                done => return done,
            }
        }
        work(self)
    }

    /// Marks the file as damaged and opens the repaired one. Returns the error if it is not repaired in time.
    fn wait_for_repair(&mut self, error: Error) -> Result<(), Error> {
        damage::mark::<S>(&self.home, self.file);
        self.is_damaged = true;
        if !self.waits_for_repair {
            return Err(error);
        }
        let opened = Self::open_after_repair(&self.home, self.wait_policy.timeout(), self.if_missing, error)?;
        self.replace_by(opened);
        Ok(())
    }

    fn is_damage(&self, error: &Error) -> bool {
        error.is_corruption() || (matches!(error, Error::Full { .. }) && S::is_exhausted(&self.connection))
    }

    /// Runs a change in one transaction, under the write lock. When it returns, the change is on disk.
    pub(crate) fn write<T>(
        &mut self,
        change: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.until_damage(|database| database.write_once(&change))
    }

    fn write_once<T>(
        &mut self,
        change: &impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let write_lock = self.wait_policy.acquire(&self.home, S::LOCK)?;
        // Checked under the lock, so that no other process can replace the file now.
        if damage::is_marked::<S>(&self.home) {
            return Err(Error::Corrupt { path: Self::path(&self.home) });
        }
        if repair::is_pending::<S>(&self.home) || !self.is_current() {
            drop(write_lock);
            self.reopen()?;
            return self.write_once(change);
        }
        let path = Self::path(&self.home);
        let log = beside(&path, "-wal");
        let failed = |error| Error::database(&path, self.wait_policy.timeout().0, error);
        let had_log = log.exists();
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if !had_log {
            // SQLite syncs a new WAL but not its directory entry (`SQLITE_DISABLE_DIRSYNC`).
            sync_directory(self.home.path()).map_err(|error| self.home.error("syncing the home", error))?;
        }
        if log.metadata().is_ok_and(|metadata| metadata.len() > TRUNCATE_LOG_ABOVE) {
            self.truncate_log();
        }
        drop(write_lock);
        Ok(changed)
    }

    /// Truncates a long WAL. SQLite's automatic checkpoint never restarts the WAL if every writer reopens the file. Does not
    /// wait: while another process reads, the next writer truncates it.
    fn truncate_log(&self) {
        if self.connection.busy_timeout(Duration::ZERO).is_ok() {
            // The change itself is already on disk, whatever the result.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(self.wait_policy.timeout().0);
        }
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::database(&Self::path(&self.home), self.wait_policy.timeout().0, source)
    }
}

/// Polling interval while waiting for a repair, and the interval at which it is requested again.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl<S: Schema> Database<S> {
    /// Opens the file, repairing it first if it is damaged: copies the readable rows into a fresh file and quarantines the
    /// damaged one. Only for the process that holds the hub's lock; see [`Database::repair`].
    pub fn open_repaired(home: &Home) -> Result<Self, Error> {
        let mut repair = None;
        for number in 0..=MAX_REPAIRS {
            let file = FileId::of(&Self::path(home)).ok();
            match Self::open_checked(home) {
                Err(error) if error.is_corruption() && number < MAX_REPAIRS => {
                    repair = repair::quarantine::<S>(home, LockTimeout::COMMAND, file)?.or(repair);
                }
                opened => {
                    let mut database = opened?;
                    // The marker of a file that was replaced since.
                    damage::unmark::<S>(home);
                    database.repair = repair.or(database.repair);
                    return Ok(database);
                }
            }
        }
        Err(Error::Corrupt { path: Self::path(home) })
    }

    /// Opens the file after checking its WAL, even if other processes have it open.
    fn open_checked(home: &Home) -> Result<Self, Error> {
        home.check_owner()?;
        let path = Self::path(home);
        if path.exists() && Self::is_log_damaged(home, LockTimeout::COMMAND)? {
            return Err(Error::Corrupt { path });
        }
        Self::open_undamaged(home, LockTimeout::COMMAND, IfMissing::Make)
    }

    /// Returns true if commits in the WAL would be lost. Takes the write lock, so that no process truncates the WAL meanwhile.
    fn is_log_damaged(home: &Home, lock_timeout: LockTimeout) -> Result<bool, Error> {
        let _write_lock = write_lock::acquire(home, S::LOCK, lock_timeout)?;
        Ok(damage::is_log_damaged(&Self::path(home)))
    }

    /// Requests a repair and opens the file afterwards. Returns `error` if it is not repaired in time.
    fn open_after_repair(
        home: &Home,
        lock_timeout: LockTimeout,
        if_missing: IfMissing,
        error: Error,
    ) -> Result<Self, Error> {
        let Some(request) = home.hub_starter() else { return Err(error) };
        let end = Instant::now() + lock_timeout.0;
        let mut asked: Option<Instant> = None;
        loop {
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_AGAIN_AFTER) {
                request(home);
                asked = Some(Instant::now());
            }
            if !damage::is_marked::<S>(home) {
                match Self::open_or_mark(home, lock_timeout, if_missing) {
                    Err(error) if error.is_corruption() => {}
                    opened => {
                        let mut database = opened?;
                        database.repair = database.newest_repair();
                        return Ok(database);
                    }
                }
            }
            if Instant::now() >= end {
                return Err(error);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn newest_repair(&self) -> Option<Repair> {
        let records = damage::select(&self.connection, "true").ok()?;
        records.into_iter().rev().find_map(|record| match record.damage {
            Damage::File { damaged_copy, rescued_rows } => Some(Repair { damaged_copy, rescued_rows }),
            Damage::Row { .. } => None,
        })
    }

    /// All repairs recorded in this file, oldest first, except those whose quarantined file the person has removed.
    pub fn repairs(&mut self) -> Result<Vec<RepairRecord>, Error> {
        let mut all = self.read(|connection| damage::select(connection, "true"))?;
        all.retain(
            |repair| !matches!(&repair.damage, Damage::File { damaged_copy, .. } if !damage::exists(damaged_copy)),
        );
        Ok(all)
    }

    /// Repairs that were not yet reported to the person, oldest first.
    pub fn unreported_repairs(&mut self) -> Result<Vec<RepairRecord>, Error> {
        self.read(|connection| damage::select(connection, "reported = 0"))
    }

    /// Marks repairs as reported to the person.
    pub fn mark_repairs_reported(&mut self, repairs: &[RepairRecord]) -> Result<(), Error> {
        self.write(|transaction| {
            let mut tell = transaction.prepare("UPDATE repair SET reported = 1 WHERE id = ?1")?;
            repairs.iter().try_for_each(|repair| tell.execute([repair.id.as_str()]).map(drop))
        })
    }
}
