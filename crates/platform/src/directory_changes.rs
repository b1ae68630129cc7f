//! Changes of files in directories (inotify).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Watches directories for files that are created, written, replaced or removed.
#[derive(Debug)]
pub struct DirectoryChanges {
    queue: OwnedFd,
    /// Directories by their inotify watch descriptors.
    directories: HashMap<i32, PathBuf>,
}

impl DirectoryChanges {
    /// Starts watching. Directories that do not exist are skipped; in the others no change is missed from here on.
    pub fn begin<'a>(directories: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DELETE;
        let mut watched: HashMap<i32, PathBuf> = HashMap::new();
        for directory in directories {
            if let Ok(number) = inotify::add_watch(&queue, directory, flags) {
                watched.insert(number, directory.to_owned());
            }
        }
        Ok(Self { queue, directories: watched })
    }

    /// Waits for changes. Returns the changed files; the list may be incomplete if the queue overflowed.
    pub fn wait(&self) -> io::Result<Vec<PathBuf>> {
        loop {
            match poll(&mut [PollFd::new(&self.queue, PollFlags::IN)], None) {
                Ok(_) => return Ok(self.read()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the files that have changed since the last call, without waiting.
    pub fn read(&self) -> Vec<PathBuf> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.queue, &mut room);
        let mut paths = Vec::new();
        while let Ok(event) = reader.next() {
            // The queue overflowed and some changes are lost. Later changes are reported as usual.
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

impl AsFd for DirectoryChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl AsRawFd for DirectoryChanges {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_replaced_or_removed_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let (file, gone) = (directory.path().join("a"), directory.path().join("nowhere"));
        let changes = DirectoryChanges::begin([directory.path(), gone.as_path()].into_iter()).unwrap();
        assert!(changes.read().is_empty());
        std::fs::write(&file, "1").unwrap();
        assert!(changes.wait().unwrap().contains(&file));
        std::fs::rename(&file, directory.path().join("b")).unwrap();
        assert_eq!(changes.wait().unwrap(), [directory.path().join("b")]);
        std::fs::remove_file(directory.path().join("b")).unwrap();
        assert_eq!(changes.wait().unwrap(), [directory.path().join("b")]);
    }
}
