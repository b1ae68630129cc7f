//! Locks between processes: `flock` on separate files. The kernel releases them when the owner dies.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// An exclusive lock, held until it is dropped or its process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Back-off between attempts: short at first, because most owners hold the lock for less than a millisecond; then long, because
/// a thousand polling processes would leave no CPU time to the owner.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

impl Lock {
    /// Takes the lock, waiting until the deadline (`None`: for ever). Returns `Ok(None)` if another process holds it.
    ///
    /// Polls instead of blocking: a stopped process that holds the lock must not block others past their deadline.
    pub fn take(path: &Path, deadline: Option<Instant>) -> io::Result<Option<Self>> {
        let mut pause = FIRST_PAUSE;
        let mut file = open(path)?;
        loop {
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => return Ok(Some(Self { file })),
                // The file was removed between open and lock: this lock protects nothing.
                Ok(()) => {
                    file = open(path)?;
                    continue;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            let pause_now = jittered(pause);
            thread::sleep(left.map_or(pause_now, |left| left.min(pause_now)));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The locked file, into which the holder may write its identity.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Half to all of a pause, so that processes that started together do not stay in step.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(RandomState::new().hash_one(pause).to_le_bytes()[0]);
    pause / 2 + pause * share / 512
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Identity of a file, independent of its name: device and inode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    length: u64,
}

impl FileId {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::read(&metadata))
    }

    fn read(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), length: metadata.len() }
    }

    /// The identity of no file.
    pub(crate) const fn none() -> Self {
        Self { device: 0, inode: 0, length: 0 }
    }

    /// Its length when the identity was read.
    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// Returns true if it was empty when the identity was read.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.device, self.inode)
    }
}

/// Ignores the length: a file that grew is the same file.
impl PartialEq for FileId {
    fn eq(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Eq for FileId {}

/// Returns true if an open file is still the one at a path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let open = file.metadata().map(|metadata| FileId::read(&metadata));
    matches!((open, FileId::of(path)), (Ok(open), Ok(named)) if open == named)
}

/// Returns true if an open file was removed or replaced. Other errors, such as a missing permission, are not evidence of that.
pub(crate) fn is_gone(file: &File, path: &Path) -> bool {
    match FileId::of(path) {
        Ok(named) => file.metadata().is_ok_and(|metadata| FileId::read(&metadata) != named),
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Returns true if a process may hold the lock on a file. Of the errors, only `NotFound` proves that none does: with any other,
/// such as too many open files, the lock of a live process could be taken away.
pub(crate) fn is_held(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = Lock::take(&path, None).unwrap().unwrap();
        assert!(is_held(&path));
        assert!(Lock::take(&path, Some(Instant::now())).unwrap().is_none());
        drop(held);
        // A program that another test starts at this moment has all open files until it begins.
        while is_held(&path) {
            thread::yield_now();
        }
        assert!(Lock::take(&path, Some(Instant::now())).unwrap().is_some());
    }

    /// The file cannot be opened, and not because it is not there: its directory is a file, or its name is too long.
    #[test]
    fn a_lock_that_cannot_be_looked_at_counts_as_held() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(is_held(&file.join("lock")) && is_held(&directory.path().join("x".repeat(300))));
        assert!(!is_held(&directory.path().join("lock")), "there is none");
    }

    #[test]
    fn a_file_that_was_removed_is_not_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let old = Lock::take(&path, None).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(old.file(), &path) && is_gone(old.file(), &path));
        let new = Lock::take(&path, Some(Instant::now())).unwrap().unwrap();
        assert!(is_at(new.file(), &path) && !is_gone(new.file(), &path));
        assert!(is_gone(old.file(), &path), "another file has its name");
        assert!(is_gone(new.file(), &path.join("below a file")));
        assert!(!is_gone(new.file(), &directory.path().join("x".repeat(300))), "an error says nothing");
    }
}
