//! Taking turns at writing.
//!
//! SQLite's own way of waiting is unfair: among sixteen writers one starved for a second. So writers queue at a lock of
//! their own before they begin.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::home::Home;
use crate::lock::Lock;
use crate::store::Form;

/// How long a writer waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Patience {
    /// A person or a script can wait a little.
    pub const COMMAND: Self = Self(Duration::from_secs(5));
    /// The hub's loop must not stand still: what it cannot write it tries again later.
    pub const LOOP: Self = Self(Duration::from_millis(100));
    /// One try.
    pub const NONE: Self = Self(Duration::ZERO);
    /// An agent must not be held up.
    pub const HOOK: Self = Self(Duration::from_millis(50));
}

/// Waits for our turn. It is over when the lock is dropped.
pub(crate) fn take<F: Form>(home: &Home, patience: Patience) -> Result<Lock, Error> {
    Lock::take(&home.path().join(F::LOCK), Some(Instant::now() + patience.0))
        .map_err(|error| home.error("taking the write lock", error))?
        .ok_or(Error::Busy { waited: patience.0 })
}
