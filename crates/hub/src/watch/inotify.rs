//! File changes through inotify.

use std::path::PathBuf;

use ringer_platform::DirectoryChanges;
use tokio::io::unix::AsyncFd;

/// The changes in the directories of all files.
#[derive(Debug)]
pub(crate) struct Changes {
    queue: AsyncFd<DirectoryChanges>,
}

impl Changes {
    /// Starts to watch. No later change is missed.
    pub(crate) fn begin<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<Self> {
        // Editors replace a file rather than write it, so its directory is watched, and names are compared.
        let directories = paths.filter_map(|path| path.parent());
        let queue = DirectoryChanges::begin(directories).ok()?;
        #[expect(
            deprecated,
            reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
        )]
        let queue = AsyncFd::new(queue).ok()?;
        Some(Self { queue })
    }

    /// Waits for changes, and returns the changed files, including other files of those directories.
    pub(crate) async fn next(&mut self) -> Option<Vec<PathBuf>> {
        let mut ready = self.queue.readable().await.ok()?;
        // Cleared before the read: a later change makes it ready again.
        ready.clear_ready();
        Some(self.queue.get_ref().read())
    }

    /// Replaces another source. Returns the changes that it has not reported yet.
    #[expect(
        clippy::unused_self,
        reason = "where the system does not tell of changes, this one has to know the other"
    )]
    pub(super) fn take_over(&mut self, other: &Self) -> Vec<PathBuf> {
        other.queue.get_ref().read()
    }
}
