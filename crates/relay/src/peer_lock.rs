//! One connection between two machines at a time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_journal::{Home, Lock};

use crate::error::Error;
use crate::machine::MachineId;

/// How long to wait for the process of the last connection to end.
const FREE_WITHIN: Duration = Duration::from_millis(500);

/// Held while a connection to a machine exists: two would send everything twice.
#[derive(Debug)]
pub(crate) struct PeerLock {
    _lock: Lock,
}

/// The file that is locked.
pub(crate) fn lock_path(home: &Home, machine: &MachineId) -> PathBuf {
    home.path().join(format!("relay-{}.lock", machine.as_str()))
}

impl PeerLock {
    /// Takes it. `name` is what the machine is called, for the error.
    pub(crate) fn take(
        home: &Home,
        machine: &MachineId,
        name: impl FnOnce() -> String,
    ) -> Result<Self, Error> {
        let path = lock_path(home, machine);
        match Lock::take(&path, Some(Instant::now() + FREE_WITHIN)) {
            Ok(Some(lock)) => Ok(Self { _lock: lock }),
            Ok(None) => Err(Error::Connected(name())),
            Err(source) => Err(Error::Io { what: format!("cannot lock {}", path.display()), source }),
        }
    }
}
