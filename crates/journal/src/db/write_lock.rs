//! The lock that serialises the writers of a database.
//!
//! `flock` with a jittered back-off of 50 µs to 25 ms. SQLite's own busy handler starved one of sixteen writers for a second in a
//! measurement. The lock is not first-in-first-out.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::home::Home;
use crate::lock::Lock;

/// How long a writer waits for the write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockTimeout(pub Duration);

impl LockTimeout {
    /// For commands: a person or a script can wait a little.
    pub const COMMAND: Self = Self(Duration::from_secs(5));
    /// For the hub's loop, which must not block: it tries again later.
    pub const LOOP: Self = Self(Duration::from_millis(100));
    /// A single attempt.
    pub const NONE: Self = Self(Duration::ZERO);
    /// For hooks, whose agent waits for them. Most writers hold the lock for less than a millisecond, and a person does not
    /// notice this delay. An event that cannot be written in time is spooled.
    pub const HOOK: Self = Self(Duration::from_millis(50));
}

/// How a writer waits for the write lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitPolicy {
    timeout: LockTimeout,
    /// For an event loop: after a timeout, the lock is tried without waiting until this time has passed. Otherwise the waits of
    /// consecutive writes would add up.
    pause: Option<Duration>,
    busy_since: Option<Instant>,
}

impl WaitPolicy {
    pub(crate) fn new(timeout: LockTimeout) -> Self {
        Self { timeout, pause: None, busy_since: None }
    }

    /// For an event loop: waits for the timeout at most, and not again within the pause.
    pub(crate) fn of_loop(timeout: LockTimeout, pause: Duration) -> Self {
        Self { timeout, pause: Some(pause), busy_since: None }
    }

    pub(crate) fn timeout(&self) -> LockTimeout {
        self.timeout
    }

    /// Sets the timeout and returns the previous one.
    pub(crate) fn set_timeout(&mut self, timeout: LockTimeout) -> LockTimeout {
        std::mem::replace(&mut self.timeout, timeout)
    }

    /// Waits for the write lock. Dropping it releases it.
    pub(crate) fn acquire(&mut self, home: &Home, file: &str) -> Result<Lock, Error> {
        let is_pausing =
            self.busy_since.zip(self.pause).is_some_and(|(since, pause)| since.elapsed() < pause);
        let acquired = acquire(home, file, if is_pausing { LockTimeout::NONE } else { self.timeout });
        match &acquired {
            Err(Error::Busy { .. }) if is_pausing => {}
            Err(Error::Busy { .. }) => self.busy_since = Some(Instant::now()),
            _ => self.busy_since = None,
        }
        acquired
    }
}

/// Waits for the write lock. Dropping it releases it.
pub(crate) fn acquire(home: &Home, file: &str, lock_timeout: LockTimeout) -> Result<Lock, Error> {
    Lock::take(&home.path().join(file), Some(Instant::now() + lock_timeout.0))
        .map_err(|error| home.error("taking the write lock", error))?
        .ok_or(Error::Busy { waited: lock_timeout.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_waits_once_and_then_only_tries_until_the_pause_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().to_owned());
        let held = acquire(&home, "lock", LockTimeout::NONE).unwrap();
        let mut waits = WaitPolicy::of_loop(LockTimeout::LOOP, Duration::from_hours(1));
        let waited = |waits: &mut WaitPolicy| match waits.acquire(&home, "lock") {
            Err(Error::Busy { waited }) => Some(waited),
            _ => None,
        };
        assert_eq!(waited(&mut waits), Some(LockTimeout::LOOP.0));
        assert_eq!(waited(&mut waits), Some(Duration::ZERO));
        assert_eq!(waited(&mut waits), Some(Duration::ZERO));
        drop(held);
        drop(waits.acquire(&home, "lock").unwrap());
        let _held = acquire(&home, "lock", LockTimeout::NONE).unwrap();
        assert_eq!(waited(&mut waits), Some(LockTimeout::LOOP.0), "the lock was free in between");
        waits.pause = Some(Duration::ZERO);
        assert_eq!(waited(&mut waits), Some(LockTimeout::LOOP.0), "the pause is over");
    }
}
