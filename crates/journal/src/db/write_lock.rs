//! The lock that serialises the writers of a database.
//!
//! flock with a jittered back-off of 50 µs to 25 ms. Measured: SQLite's busy handler starved one of sixteen writers for a
//! second. The lock is not first-in-first-out.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::home::Home;
use crate::lock::Lock;

/// How long a writer waits for the write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockTimeout(pub Duration);

impl LockTimeout {
    /// A person or a script can wait a little.
    pub const COMMAND: Self = Self(Duration::from_secs(5));
    /// The hub's loop must not block: it tries again later.
    pub const LOOP: Self = Self(Duration::from_millis(100));
    /// One try.
    pub const NONE: Self = Self(Duration::ZERO);
    /// For hooks, which must not delay their agent.
    pub const HOOK: Self = Self(Duration::from_millis(50));
}

/// Waits for the write lock. Dropping it releases it.
pub(crate) fn acquire(home: &Home, file: &str, lock_timeout: LockTimeout) -> Result<Lock, Error> {
    Lock::take(&home.path().join(file), Some(Instant::now() + lock_timeout.0))
        .map_err(|error| home.error("taking the write lock", error))?
        .ok_or(Error::Busy { waited: lock_timeout.0 })
}
