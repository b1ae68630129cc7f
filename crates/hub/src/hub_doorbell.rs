//! The hub's lock and doorbell, as the loop waits for them.

use ringer_journal::{Error, Home, HubLock, Removal};
use tokio::io::unix::AsyncFd;

use crate::error::HubError;

/// The lock with its doorbell. Inside a tokio runtime.
pub(crate) struct HubDoorbell {
    lock: AsyncFd<HubLock>,
    /// `None` where the system does not tell of it: there it is noticed when the loop wakes up for something else.
    removal: Option<AsyncFd<Removal>>,
}

impl HubDoorbell {
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; these cannot"
    )]
    pub(crate) fn new(lock: HubLock) -> Result<Self, HubError> {
        let removal = lock.removal().map(AsyncFd::new).transpose().map_err(HubError::Runtime)?;
        Ok(Self { lock: AsyncFd::new(lock).map_err(HubError::Runtime)?, removal })
    }

    /// Waits until it rings.
    pub(crate) async fn rang(&self) {
        if let Ok(mut rang) = self.lock.readable().await {
            rang.clear_ready();
        }
    }

    /// Waits until it may have been removed.
    pub(crate) async fn changed(&self) {
        let Some(removal) = &self.removal else { return std::future::pending().await };
        if let Ok(mut told) = removal.readable().await {
            removal.get_ref().drain();
            told.clear_ready();
        }
    }

    /// Reads away all wake-ups, and gives whether there were any. To be called before reading the journal.
    pub(crate) fn drain(&self, home: &Home) -> Result<bool, Error> {
        self.lock.get_ref().drain(home)
    }

    /// Whether this hub no longer owns the home: [`HubLock::is_gone`].
    pub(crate) fn is_gone(&self) -> bool {
        self.lock.get_ref().is_gone()
    }

    pub(crate) fn into_lock(self) -> HubLock {
        self.lock.into_inner()
    }
}
