//! Who repairs a damaged file, who waits for that, and what the file says of its repairs.

use std::thread;
use std::time::{Duration, Instant};

use super::{Database, IfMissing, MAX_REPAIRS};
use crate::db::damage;
use crate::db::repair::{self, Repair};
use crate::db::repair_record::{self, Damage, RepairRecord};
use crate::db::schema::Schema;
use crate::db::write_lock::{self, LockTimeout};
use crate::error::Error;
use crate::home::Home;
use crate::lock::FileId;

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
    pub(super) fn is_log_damaged(home: &Home, lock_timeout: LockTimeout) -> Result<bool, Error> {
        let _write_lock = write_lock::acquire(home, S::LOCK, lock_timeout)?;
        Ok(damage::is_log_damaged(&Self::path(home)))
    }

    /// Asks for the repair, and opens the file once it is done. Fails with this error if it is not done in time.
    pub(super) fn open_after_repair(
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
