//! The hub's access to the journal: its lock and doorbell, and its read position.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

use crate::db::tables::optional_text;
use crate::db::write_lock::LockTimeout;
use crate::error::Error;
use crate::home::Home;
use crate::hub_store::HubStore;
use crate::journal::consumer::advance;
use crate::journal::read::{CatchUp, Cursor, ReadPosition};
use crate::journal::schema::{Journal, POSITION};
use crate::process::started;
use crate::wake::doorbell::{self, BellLock, Doorbell, LockOwner, Removal};

/// Name of the hub's cursor.
const CONSUMER: &str = "hub";
/// Scope of that cursor: all scopes. No repository has this id.
const EVERYWHERE: &str = "*";

/// How long to wait for the hub's lock in one attempt: a process that checks whether the hub is alive holds it for a moment.
const ACQUIRE_WITHIN: Duration = Duration::from_millis(200);
/// How long a starting hub waits for commands that apply spooled events under its lock: each holds it for one batch.
const COMMANDS_END_WITHIN: Duration = Duration::from_secs(5);

/// The single-instance lock of the hub, with its doorbell. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct HubLock(Doorbell);

impl HubLock {
    /// Acquires the lock. `None` if a hub is already running.
    pub fn acquire(home: &Home) -> Result<Option<Self>, Error> {
        let pid = std::process::id();
        let owner = LockOwner {
            pid,
            started: started(pid),
            consumer: CONSUMER.to_owned(),
            scope: EVERYWHERE.to_owned(),
        };
        home.make_directories().map_err(|error| home.error("cannot create the state directory", error))?;
        let end = Instant::now() + COMMANDS_END_WITHIN;
        loop {
            match Doorbell::create(home, doorbell::HUB, &owner, Some(Instant::now() + ACQUIRE_WITHIN)) {
                Ok(bell) => return Ok(Some(Self(bell))),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    // Unlike a hub, a command that holds the lock writes no owner into it.
                    if Self::owner(home).is_some() || Instant::now() >= end {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(home.error("hanging the hub's doorbell", error)),
            }
        }
    }

    /// Permits the hub that holds this lock to apply spooled events.
    pub fn spool_lock(&self) -> SpoolLock {
        SpoolLock { _held: self.0.lock() }
    }

    /// Consumes all wake-ups. Returns true if there were any. Call it before reading the journal.
    pub fn drain(&self, home: &Home) -> Result<bool, Error> {
        self.0.drain().map_err(|error| home.error("emptying the hub's doorbell", error))
    }

    /// Returns true if the lock or its doorbell was removed or replaced, as when the home was removed. Another hub may own the
    /// home by now, so this process must not use its files any more.
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    /// A descriptor that becomes readable when [`Self::is_gone`] may be true. `None` if the system does not support it.
    pub fn removal(&self) -> Option<Removal> {
        self.0.removal()
    }

    /// The running hub, if there is one.
    pub fn owner(home: &Home) -> Option<LockOwner> {
        let path = doorbell::named(home, doorbell::HUB);
        doorbell::is_alive(&path).then(|| doorbell::owner(&path)).flatten()
    }
}

/// Proof that this process holds the hub's lock, which is required to apply spooled events. The lock is held until this is
/// dropped.
#[derive(Debug)]
pub struct SpoolLock {
    _held: Arc<BellLock>,
}

impl SpoolLock {
    /// Takes the hub's lock for a command: without a doorbell, and without being found as a hub. `None` if another process
    /// holds the lock. Does not wait.
    pub fn take(home: &Home) -> Result<Option<Self>, Error> {
        let taken =
            home.make_directories().and_then(|()| BellLock::take(home, doorbell::HUB, Some(Instant::now())));
        let taken = taken.map_err(|error| home.error("taking the hub's lock", error))?;
        Ok(taken.map(|lock| Self { _held: Arc::new(lock) }))
    }
}

impl AsFd for HubLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for HubLock {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Journal {
    /// How far the hub has read this journal, according to the hub store. If that is lost, the hub re-reads the journal:
    /// messages up to its last published cursor are not new, and it recognises those in the hub store by their ids.
    pub fn hub_position(&mut self, hub_store: Option<&mut HubStore>) -> Result<ReadPosition, Error> {
        if let Some(taken) = hub_store.map(HubStore::position).transpose()?.flatten() {
            return self.resume_at(&taken);
        }
        let (newest, until) = (self.read(published_hub_cursor)?, self.highest()?);
        let beginning = Cursor { generation: Some(self.generation()?), seq: 0, id: None };
        Ok(ReadPosition { cursor: beginning, catch_up: newest.map(|newest| CatchUp { newest, until }) })
    }

    /// Publishes the hub's cursor in the journal, so that pruning keeps what the hub has not read. The hub calls it from time
    /// to time.
    pub fn advance_hub(&mut self, cursor: &Cursor, unix_ms: i64) -> Result<(), Error> {
        self.with_lock_timeout(LockTimeout::LOOP, |journal| {
            journal.write(|transaction| {
                let place = "VALUES (?1, ?2, ?3, ?4, ?5, 0)";
                advance(transaction, place, params![CONSUMER, EVERYWHERE, cursor.seq, cursor.id, unix_ms])
            })
        })
    }

    /// Checkpoints the WAL without blocking other processes, so that the next writer restarts it: overwriting a file is faster
    /// than extending it.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.read(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }
}

/// The message at the hub's last published cursor.
fn published_hub_cursor(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let id = connection.query_row(
        &format!(
            "SELECT iif({POSITION} = seq, id, (SELECT id FROM message WHERE message.seq = {POSITION}))
             FROM cursor WHERE consumer = ?1 AND scope = ?2"
        ),
        [CONSUMER, EVERYWHERE],
        |row| optional_text(row, 0),
    );
    id.optional().map(Option::flatten)
}
