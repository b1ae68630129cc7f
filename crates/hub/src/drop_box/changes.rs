//! Watches the drop box for changes.

use std::os::fd::BorrowedFd;
use std::path::Path;

/// Watches through inotify. Reports nothing on other systems.
#[derive(Debug, Default)]
pub(super) struct DropChanges {
    #[cfg(target_os = "linux")]
    changes: Option<ringer_platform::DirectoryChanges>,
}

#[cfg(target_os = "linux")]
impl DropChanges {
    /// Starts to watch the directory, if it is not watched yet. No later change is missed.
    pub(super) fn watch(&mut self, directory: &Path) {
        if self.changes.is_none() {
            self.changes = ringer_platform::DirectoryChanges::begin(std::iter::once(directory)).ok();
        }
    }

    pub(super) fn drain(&self) {
        if let Some(changes) = &self.changes {
            changes.read();
        }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(std::os::fd::AsFd::as_fd)
    }
}

#[cfg(not(target_os = "linux"))]
impl DropChanges {
    pub(super) fn watch(&mut self, _: &Path) {}

    pub(super) fn drain(&self) {}

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
