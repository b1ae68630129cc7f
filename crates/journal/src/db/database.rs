//! One SQLite file of the home: opens it, serialises its writers, and ends what they do when it is damaged.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::sync_directory;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::db::connection::{Access, Connected, FileConnection, connect, is_index_unused};
use crate::db::damage;
use crate::db::repair::{self, Repair};
use crate::db::repair_record::{self, Damage, RepairRecord};
use crate::db::tables::{self, Schema};
use crate::db::write_lock::{self, LockTimeout, LockWaits};
use crate::error::Error;
use crate::home::{Home, beside};
use crate::lock::FileId;

/// An open database file of one schema.
#[derive(Debug)]
pub struct Database<S> {
    pub(crate) home: Home,
    connection: FileConnection,
    /// The file that was opened, to notice when another one has taken its name. Only its number, and not a descriptor:
    /// closing one would drop the locks that SQLite holds on the file.
    file: FileId,
    lock_waits: LockWaits,
    if_missing: IfMissing,
    /// Whether a repair is waited for. Not by a hook: it takes longer than its agent may wait.
    waits_for_repair: bool,
    repair: Option<Repair>,
    /// Whether this one met damage that nobody has repaired.
    is_damaged: bool,
    /// Whether another file was opened since the last call of `take_reopened`.
    reopened: bool,
    /// The state that this schema keeps per open file.
    pub(crate) schema: S,
}

/// What to do where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Make,
    Fail,
}

/// A version number above this is damage: no release of Ringer will have that many schemas.
const MAX_PLAUSIBLE_VERSION: i64 = 1000;

/// How long to wait for processes that have a file open whose log is off: each reads for a moment only, unless it believes
/// that the log is on.
const TURN_LOG_ON_WITHIN: Duration = Duration::from_millis(100);

/// The length of the log above which a writer copies it into the database and truncates it. The first process to open
/// the file has to read the whole log, and `ringer notify` pays for that.
const TRUNCATE_LOG_ABOVE: u64 = 512 * 1024;

/// Pages that a long-lived process keeps in memory, as SQLite counts them: negative for KiB. What the hub reads again is at the
/// end of its tables, and SQLite's own 2 MiB for each file would be a tenth of its memory.
const LOOP_CACHE: i64 = -256;

/// How often a file that is found damaged is repaired before that is an error. Once is enough, unless another process is
/// exchanging the file at the same moment.
const MAX_REPAIRS: usize = 3;

impl<S: Schema> Database<S> {
    /// Opens the file, creating it if there is none. If it is damaged, the repair is asked for and waited for where the home
    /// says how ([`Home::with_hub_starter`]); else that is an error.
    pub fn open(home: &Home) -> Result<Self, Error> {
        Self::open_with(home, LockTimeout::COMMAND)
    }

    /// Opens the file with another lock timeout, which is also the longest time that a repair is waited for.
    pub fn open_with(home: &Home, lock_timeout: LockTimeout) -> Result<Self, Error> {
        Self::open_waiting(home, lock_timeout, IfMissing::Make)
    }

    fn open_waiting(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        match Self::open_or_note(home, lock_timeout, if_missing) {
            Err(error) if error.is_corruption() => {
                Self::open_after_repair(home, lock_timeout, if_missing, error)
            }
            opened => opened,
        }
    }

    /// Opens the file for a hook, which waits for no repair.
    pub fn open_without_repair(home: &Home, lock_timeout: LockTimeout) -> Result<Self, Error> {
        let mut database = Self::open_or_note(home, lock_timeout, IfMissing::Make)?;
        database.waits_for_repair = false;
        Ok(database)
    }

    /// Opens the file. Damage is noted.
    fn open_or_note(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        let file = FileId::of(&Self::path(home)).ok();
        let opened = Self::open_undamaged(home, lock_timeout, if_missing);
        if let (Some(file), Err(error)) = (file, &opened)
            && error.is_corruption()
        {
            damage::note::<S>(home, file);
        }
        opened
    }

    /// Opens the file if there is one. Nothing is made, also later: a change fails once the file is gone.
    pub fn open_existing(home: &Home) -> Result<Option<Self>, Error> {
        Self::open_existing_with(home, LockTimeout::COMMAND)
    }

    /// The same with another lock timeout.
    pub fn open_existing_with(home: &Home, lock_timeout: LockTimeout) -> Result<Option<Self>, Error> {
        match Self::open_waiting(home, lock_timeout, IfMissing::Fail) {
            Err(Error::Missing { .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Opens the file to read it, if there is one: also in a home that cannot be written. What the file needs first, a repair or
    /// another version, is an error there.
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

    fn open_read_only(home: &Home, lock_timeout: LockTimeout) -> Option<Self> {
        let path = Self::path(home);
        let file = FileId::of(&path).ok().filter(|_| !repair::is_pending::<S>(home))?;
        let connected = connect(&path, file, Access::Read, lock_timeout).ok().flatten()?;
        let is_current = connected.version.is_ok_and(|version| version == tables::VERSION);
        let mut database = Self::with(home, (file, connected.connection), lock_timeout);
        database.waits_for_repair = false;
        is_current.then_some(database)
    }

    /// One that is open.
    fn with(home: &Home, (file, connection): (FileId, FileConnection), lock_timeout: LockTimeout) -> Self {
        Self {
            home: home.clone(),
            connection,
            file,
            lock_waits: LockWaits::new(lock_timeout),
            if_missing: IfMissing::Fail,
            waits_for_repair: true,
            repair: None,
            is_damaged: false,
            reopened: false,
            schema: S::default(),
        }
    }

    /// Where the file is.
    fn path(home: &Home) -> PathBuf {
        home.path().join(S::FILE)
    }

    /// What was done to a damaged file when this one was opened, or since.
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Takes what [`Database::repair`] gives, so that it is reported once.
    pub fn take_repair(&mut self) -> Option<Repair> {
        self.repair.take()
    }

    /// Whether another file was opened in place of this one since the last call: this process or another one quarantined or
    /// replaced it.
    pub fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.reopened)
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The file that is open, to notice a change.
    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// Whether the file of that name is still the one that is open. It is not after a process quarantined a damaged one.
    pub fn is_current(&self) -> bool {
        FileId::of(&Self::path(&self.home)).ok() == Some(self.file)
    }

    /// Whether damage was met in this file that nobody has repaired: what has it open has to end.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Whether another file was opened in place of this one.
    pub fn is_reopened(&self) -> bool {
        self.reopened
    }

    /// Opens the file again if another one has its name by now. An error if a process has met damage in it.
    pub fn refresh(&mut self) -> Result<(), Error> {
        if damage::is_noted::<S>(&self.home) {
            return self.wait_for_repair(Error::Corrupt { path: Self::path(&self.home) });
        }
        if self.is_current() {
            return Ok(());
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let open = if self.waits_for_repair { Self::open_waiting } else { Self::open_or_note };
        let opened = open(&self.home, self.lock_waits.timeout(), self.if_missing);
        self.is_damaged |= matches!(&opened, Err(error) if error.is_corruption());
        self.replace_by(opened?);
        Ok(())
    }

    /// Another file takes the place of this one.
    fn replace_by(&mut self, opened: Self) {
        let (lock_waits, waits_for_repair) = (self.lock_waits, self.waits_for_repair);
        *self = Self { lock_waits, reopened: true, waits_for_repair, ..opened };
    }

    /// Waits for the write lock as an event loop does, from now on: for this long at most, and when it was not free, not again
    /// within the pause. Whatever needs it then fails at once with [`Error::Busy`].
    pub fn wait_as_loop(&mut self, timeout: LockTimeout, pause: Duration) {
        self.set_lock_timeout(timeout);
        self.lock_waits = LockWaits::of_loop(timeout, pause);
        // It only sets a number in the connection; where it fails, more is kept.
        let _ = self.connection.pragma_update(None, "cache_size", LOOP_CACHE);
    }

    /// Waits for the write lock as a command does, from now on: the loop is over.
    pub fn wait_as_command(&mut self) {
        self.set_lock_timeout(LockTimeout::COMMAND);
        self.lock_waits = LockWaits::new(LockTimeout::COMMAND);
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
        // It only sets a number in the connection; where it fails, the old one holds.
        let _ = self.connection.busy_timeout(lock_timeout.0);
        self.lock_waits.set_timeout(lock_timeout)
    }

    fn open_undamaged(home: &Home, lock_timeout: LockTimeout, if_missing: IfMissing) -> Result<Self, Error> {
        home.check_owner()?;
        let path = Self::path(home);
        if damage::is_noted::<S>(home) {
            return Err(Error::Corrupt { path });
        }
        let mut repair = repair::finish::<S>(home, lock_timeout)?;
        let (file, Connected { connection, version }) = loop {
            let file = match FileId::of(&path) {
                // A new file is given its name when its tables are in it, so this one was emptied.
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
            // SQLite would drop what is behind the damage, without a word.
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
            // With the tables of this version, or without any, it is the number that is damaged.
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

    /// Turns the log on where it is off, as in a copy of the file that another program made.
    fn ensure_log(&mut self) -> Result<(), Error> {
        if tables::has_log(&self.connection).map_err(|error| self.error(error))? {
            return Ok(());
        }
        let _write_lock = self.lock_waits.acquire(&self.home, S::LOCK)?;
        let turned_on = self.connection.busy_timeout(TURN_LOG_ON_WITHIN);
        let turned_on = turned_on.and_then(|()| tables::turn_log_on(&self.connection));
        match turned_on.map_err(|error| self.error(error)) {
            // A process that had the file open before it was exchanged keeps it from being changed.
            Err(Error::Busy { .. }) => return Err(Error::Corrupt { path: Self::path(&self.home) }),
            done => done?,
        }
        self.connection.busy_timeout(self.lock_waits.timeout().0).map_err(|error| self.error(error))
    }

    /// Runs a query.
    pub(crate) fn read<T>(&mut self, look: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.until_damage(|database| look(&database.connection).map_err(|error| database.error(error)))
    }

    /// Runs `work`. If the file turns out to be damaged, that is noted, and `work` runs once more on the repaired one where a
    /// repair can be waited for. Only for [`Database::read`] and [`Database::write`], which every access goes through.
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

    /// Opens the repaired file. An error if nobody repairs it in time.
    fn wait_for_repair(&mut self, error: Error) -> Result<(), Error> {
        damage::note::<S>(&self.home, self.file);
        self.is_damaged = true;
        if !self.waits_for_repair {
            return Err(error);
        }
        let opened = Self::open_after_repair(&self.home, self.lock_waits.timeout(), self.if_missing, error)?;
        self.replace_by(opened);
        Ok(())
    }

    fn is_damage(&self, error: &Error) -> bool {
        error.is_corruption() || (matches!(error, Error::Full { .. }) && S::is_exhausted(&self.connection))
    }

    /// Runs a change in one transaction, under the write lock. When this returns, it is on disk.
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
        let write_lock = self.lock_waits.acquire(&self.home, S::LOCK)?;
        // Checked under the lock: no other process can quarantine the file now.
        if damage::is_noted::<S>(&self.home) {
            return Err(Error::Corrupt { path: Self::path(&self.home) });
        }
        if repair::is_pending::<S>(&self.home) || !self.is_current() {
            drop(write_lock);
            self.reopen()?;
            return self.write_once(change);
        }
        let path = Self::path(&self.home);
        let log = beside(&path, "-wal");
        let failed = |error| Error::database(&path, self.lock_waits.timeout().0, error);
        let had_log = log.exists();
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        let changed = change(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if !had_log {
            // A log that was just made is synced, but its name is not.
            sync_directory(self.home.path()).map_err(|error| self.home.error("syncing the home", error))?;
        }
        if log.metadata().is_ok_and(|metadata| metadata.len() > TRUNCATE_LOG_ABOVE) {
            self.truncate_log();
        }
        drop(write_lock);
        Ok(changed)
    }

    /// Truncates a long log. Done here because SQLite's automatic checkpoint never restarts the log when every writer opens
    /// the file again. Does not wait: while another process reads, the next writer truncates it.
    fn truncate_log(&self) {
        if self.connection.busy_timeout(Duration::ZERO).is_ok() {
            // Whether it worked or not, the change itself is on disk.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.connection.busy_timeout(self.lock_waits.timeout().0);
        }
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::database(&Self::path(&self.home), self.lock_waits.timeout().0, source)
    }
}

/// How often it is looked whether a file was repaired, and how often the repair is asked for again.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl<S: Schema> Database<S> {
    /// Opens the file, and repairs it first if it is damaged: the rows that can be read are copied into a fresh one, and the
    /// damaged one is set aside. Only for the process that holds the hub's lock; see [`Database::repair`].
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
                    // Of a file that was there before.
                    damage::forget::<S>(home);
                    database.repair = repair.or(database.repair);
                    return Ok(database);
                }
            }
        }
        Err(Error::Corrupt { path: Self::path(home) })
    }

    /// Opens the file if its log is sound, whoever else has it open.
    fn open_checked(home: &Home) -> Result<Self, Error> {
        home.check_owner()?;
        let path = Self::path(home);
        if path.exists() && Self::is_log_damaged(home, LockTimeout::COMMAND)? {
            return Err(Error::Corrupt { path });
        }
        Self::open_undamaged(home, LockTimeout::COMMAND, IfMissing::Make)
    }

    /// Whether commits of the log would be lost. Under the write lock, since nobody truncates it then.
    fn is_log_damaged(home: &Home, lock_timeout: LockTimeout) -> Result<bool, Error> {
        let _write_lock = write_lock::acquire(home, S::LOCK, lock_timeout)?;
        Ok(damage::is_log_damaged(&Self::path(home)))
    }

    /// Asks for the repair, and opens the file once it is done. Fails with this error if it is not done in time.
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
            if !damage::is_noted::<S>(home) {
                match Self::open_or_note(home, lock_timeout, if_missing) {
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
        let records = repair_record::select(&self.connection, "true").ok()?;
        records.into_iter().rev().find_map(|record| match record.damage {
            Damage::File { damaged_copy, rescued_rows } => Some(Repair { damaged_copy, rescued_rows }),
            Damage::Row { .. } => None,
        })
    }

    /// Every repair that is recorded in this file, oldest first. A damaged file that the person has removed since is left out.
    pub fn repairs(&mut self) -> Result<Vec<RepairRecord>, Error> {
        let mut all = self.read(|connection| repair_record::select(connection, "true"))?;
        all.retain(
            |repair| !matches!(&repair.damage, Damage::File { damaged_copy, .. } if !repair_record::is_there(damaged_copy)),
        );
        Ok(all)
    }

    /// The repairs that were not reported to the person, oldest first.
    pub fn unreported_repairs(&mut self) -> Result<Vec<RepairRecord>, Error> {
        self.read(|connection| repair_record::select(connection, "told = 0"))
    }

    /// Marks repairs as reported to the person.
    pub fn mark_repairs_reported(&mut self, repairs: &[RepairRecord]) -> Result<(), Error> {
        self.write(|transaction| {
            let mut tell = transaction.prepare("UPDATE repair SET told = 1 WHERE id = ?1")?;
            repairs.iter().try_for_each(|repair| tell.execute([repair.id.as_str()]).map(drop))
        })
    }
}
