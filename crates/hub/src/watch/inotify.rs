//! Changes of files, as Linux tells of them.

use std::path::PathBuf;

use ringer_platform::DirectoryChanges;
use tokio::io::unix::AsyncFd;

/// A queue that tells of changes in the directories of all files.
#[derive(Debug)]
pub(crate) struct Changes {
    queue: AsyncFd<DirectoryChanges>,
}

impl Changes {
    /// From here on no change is missed.
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

    /// Waits for changes and gives the files, as far as the queue tells; others of those directories, too.
    pub(crate) async fn next(&mut self) -> Option<Vec<PathBuf>> {
        let mut ready = self.queue.readable().await.ok()?;
        // Before the look: what comes after it makes it ready again.
        ready.clear_ready();
        Some(self.queue.get_ref().read())
    }

    /// Takes the place of another one. Gives what that one had not told of yet.
    #[expect(
        clippy::unused_self,
        reason = "where the system does not tell of changes, this one has to know the other"
    )]
    pub(super) fn take_over(&mut self, other: &Self) -> Vec<PathBuf> {
        other.queue.get_ref().read()
    }
}
