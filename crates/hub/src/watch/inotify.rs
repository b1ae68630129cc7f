//! Changes of files, as Linux tells of them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

/// A queue that tells of changes in the directories of all files.
#[derive(Debug)]
pub(super) struct Changes {
    queue: AsyncFd<OwnedFd>,
    /// Which number stands for which directory.
    directories: HashMap<i32, PathBuf>,
}

impl Changes {
    /// From here on no change is missed.
    pub(super) fn begin<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        // Editors replace a file rather than write it, so its directory is watched, and names are compared.
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DELETE;
        let mut directories: HashMap<i32, PathBuf> = HashMap::new();
        for directory in paths.filter_map(|path| path.parent()) {
            if let Ok(number) = inotify::add_watch(&queue, directory, flags) {
                directories.insert(number, directory.to_owned());
            }
        }
        #[expect(
            deprecated,
            reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
        )]
        let queue = AsyncFd::new(queue).ok()?;
        Some(Self { queue, directories })
    }

    /// Waits for changes and gives the files, as far as the queue tells; others of those directories, too.
    pub(super) async fn next(&mut self) -> Option<Vec<PathBuf>> {
        let mut ready = self.queue.readable().await.ok()?;
        // Before the look: what comes after it makes it ready again.
        ready.clear_ready();
        Some(self.read())
    }

    /// Takes the place of another one. Gives what that one had not told of yet.
    #[expect(
        clippy::unused_self,
        reason = "where the system does not tell of changes, this one has to know the other"
    )]
    pub(super) fn take_over(&mut self, other: &Self) -> Vec<PathBuf> {
        other.read()
    }

    /// What is in the queue now.
    fn read(&self) -> Vec<PathBuf> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(self.queue.get_ref(), &mut room);
        let mut paths = Vec::new();
        while let Ok(event) = reader.next() {
            // Some were lost: nothing can be said of them, and the next change will be seen.
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                continue;
            }
            if let (Some(directory), Some(name)) = (self.directories.get(&event.wd()), event.file_name()) {
                paths.push(directory.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
        paths
    }
}
