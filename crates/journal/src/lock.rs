//! Locks between processes: flock on separate files, which the kernel releases when the owner dies.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A lock that is held until it is dropped, or its process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// The pauses between two tries: short at first, because most owners hold the lock for less than a millisecond; then long,
/// because a thousand processes that try all the time leave no processor time to the owner.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

impl Lock {
    /// Takes the lock, waiting until the deadline at most (`None`: for ever). `Ok(None)`: another process has it.
    ///
    /// Polls instead of blocking: a stopped process that holds the lock must not block others past their deadline.
    pub fn take(path: &Path, deadline: Option<Instant>) -> io::Result<Option<Self>> {
        let mut pause = FIRST_PAUSE;
        let mut file = open(path)?;
        loop {
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => return Ok(Some(Self { file })),
                // Another process removed the file between open and lock: this lock protects nothing.
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

    /// The locked file, to write in it who holds it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Between half of a pause and all of it, so that processes that began together do not keep trying together.
fn jittered(pause: Duration) -> Duration {
    let share = u32::from(RandomState::new().hash_one(pause).to_le_bytes()[0]);
    pause / 2 + pause * share / 512
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    length: u64,
}

impl FileId {
    /// The file of that name.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::read(&metadata))
    }

    fn read(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino(), length: metadata.len() }
    }

    /// How many bytes were in it when it was looked at.
    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// Whether nothing was in it when it was looked at.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// As it is written down.
impl fmt::Display for FileId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.device, self.inode)
    }
}

/// A file that grew is the same file.
impl PartialEq for FileId {
    fn eq(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Eq for FileId {}

/// Whether an open file is still the one of that name.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let open = file.metadata().map(|metadata| FileId::read(&metadata));
    matches!((open, FileId::of(path)), (Ok(open), Ok(named)) if open == named)
}

/// Whether an open file was removed, or another one has its name. An error such as a missing permission says nothing.
pub(crate) fn is_gone(file: &File, path: &Path) -> bool {
    match FileId::of(path) {
        Ok(named) => file.metadata().is_ok_and(|metadata| FileId::read(&metadata) != named),
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Whether a process holds the lock on a file. Only of a file that is not there it is known that none does: any other
/// error, such as too many open files, says nothing, and the lock of a process that lives must not be taken away.
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
        assert!(!is_held(&path));
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
