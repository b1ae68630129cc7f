//! Doorbells: FIFOs with which a writer wakes waiting processes without blocking.
//!
//! A doorbell carries no data. Messages are read from the journal, so a lost wake-up loses no message, and waking an exited
//! process costs microseconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::lock::{Lock, is_at, is_gone, is_held};
use crate::process::{is_ending, started};

/// Name of the hub's doorbell, which every writer wakes.
pub(crate) const HUB: &str = "hub";

/// The process that waits at a doorbell, as stored in the lock file beside it, for people and for `ringer nuke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    /// The process.
    pub pid: u32,
    /// Start time in the kernel's clock ticks, because PIDs are reused.
    pub started: Option<u64>,
    /// The consumer it reads as.
    pub consumer: String,
    /// The scope it reads.
    pub scope: String,
}

impl LockOwner {
    /// Returns true if the process is still running and its PID was not reused.
    pub fn is_running(&self) -> bool {
        self.started.is_none() || started(self.pid) == self.started
    }
}

/// A doorbell of this process: a FIFO that others write to, and a lock that proves that this process is alive.
#[derive(Debug)]
pub(crate) struct Doorbell {
    fifo: File,
    name: String,
    /// Shared with [`Doorbell::lock`].
    lock: Arc<BellLock>,
}

/// The lock of a doorbell. It can be held without the FIFO and without an owner in the file: then its holder cannot be woken and
/// does not count as a waiting process.
#[derive(Debug)]
pub(crate) struct BellLock {
    lock: Lock,
    /// The FIFO.
    path: PathBuf,
}

impl BellLock {
    /// Takes the lock, waiting until the deadline (`None`: for ever). Returns `Ok(None)` if another process holds it.
    pub(crate) fn take(home: &Home, name: &str, deadline: Option<Instant>) -> io::Result<Option<Self>> {
        let path = named(home, name);
        let Some(lock) = Lock::take(&lock_of(&path), deadline)? else { return Ok(None) };
        let own = Self { lock, path };
        // Left by a previous owner that was killed.
        own.lock.file().set_len(0)?;
        Ok(Some(own))
    }
}

impl Drop for BellLock {
    fn drop(&mut self) {
        // If the lock file was replaced, the files belong to another process.
        if is_at(self.lock.file(), &lock_of(&self.path)) {
            // If this fails, the next process that registers removes the files.
            remove(&self.path);
        }
    }
}

impl Doorbell {
    /// Creates a doorbell. Fails after the deadline if another process holds the name.
    pub(crate) fn create(
        home: &Home,
        name: &str,
        owner: &LockOwner,
        deadline: Option<Instant>,
    ) -> io::Result<Self> {
        let lock = BellLock::take(home, name, deadline)?.ok_or(ErrorKind::WouldBlock)?;
        // Left by a killed process, or not a doorbell at all.
        remove_any(&lock.path);
        let mut line = serde_json::to_vec(owner)?;
        line.push(b'\n');
        lock.lock.file().write_all(&line)?;
        make_fifo(&lock.path)?;
        // Opened for reading and writing, so that there is always a writer and an idle FIFO does not report end of file.
        let fifo = OpenOptions::new().read(true).write(true).custom_flags(nonblocking()).open(&lock.path)?;
        Ok(Self { fifo, name: name.to_owned(), lock: Arc::new(lock) })
    }

    /// A share of the lock, which is released when all shares are dropped.
    pub(crate) fn lock(&self) -> Arc<BellLock> {
        Arc::clone(&self.lock)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Consumes all wake-ups. Returns true if there were any. Call it *before* reading the journal, so that a later message wakes
    /// this process again.
    pub(crate) fn drain(&self) -> io::Result<bool> {
        let mut rings = [0; 512];
        let mut rang = false;
        loop {
            match (&self.fifo).read(&mut rings) {
                Ok(_) => rang = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(rang),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Doorbell {
    /// Returns true if the FIFO or its lock was removed or replaced: then nothing can wake this process, or another process has
    /// its name.
    pub(crate) fn is_gone(&self) -> bool {
        let BellLock { lock, path } = self.lock.as_ref();
        is_gone(&self.fifo, path) || is_gone(lock.file(), &lock_of(path))
    }

    /// A descriptor that becomes readable when the doorbell may have been removed. `None` if the system does not support it.
    #[cfg(target_os = "linux")]
    pub(crate) fn removal(&self) -> Option<Removal> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        // Unlinking an open file does not delete it but changes its link count, which is an attribute.
        let flags = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
        add_watch(&queue, &self.lock.path, flags).ok().map(|_| Removal(queue))
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux reports it")]
    pub(crate) fn removal(&self) -> Option<Removal> {
        None
    }
}

/// A descriptor that becomes readable when a doorbell may have been removed.
#[derive(Debug)]
pub struct Removal(OwnedFd);

impl Removal {
    /// Consumes pending notifications. Call it before checking the doorbell.
    pub fn drain(&self) {
        while rustix::io::read(&self.0, &mut [0; 1024]).is_ok_and(|length| length > 0) {}
    }
}

impl AsFd for Removal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Removal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}

/// Wakes the process at a doorbell. Never blocks and never creates the file. Returns true if a process reads it; a regular file
/// of that name, left by a backup or a shell's `>`, has no reader.
pub(crate) fn wake(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).custom_flags(nonblocking()).open(path);
    let Ok(mut fifo) = opened else { return false };
    if !fifo.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return false;
    }
    // If the FIFO is full, its reader has a wake-up pending.
    let _ = fifo.write(b"!");
    true
}

/// Wakes doorbells by their names. With several listeners all are woken, because the first may die before it has read.
pub(crate) fn wake_named(home: &Home, names: &[String]) {
    for name in names {
        wake(&named(home, name));
    }
}

/// Wakes the hub. Returns true if a hub was woken. A hub that was killed a moment ago does not count, although its doorbell is
/// still open.
pub(crate) fn wake_hub(home: &Home) -> bool {
    let hub = named(home, HUB);
    wake(&hub) && !owner(&hub).is_some_and(|owner| is_ending(owner.pid, owner.started))
}

/// Wakes every doorbell of a home, registered or not, including the hub's.
pub(crate) fn wake_all(home: &Home) {
    for bell in all(home) {
        wake(&bell);
    }
}

/// The path of a doorbell.
pub(crate) fn named(home: &Home, name: &str) -> PathBuf {
    home.bells().join(name).with_extension("fifo")
}

/// Returns true if the process at a doorbell is alive.
pub(crate) fn is_alive(path: &Path) -> bool {
    is_held(&lock_of(path))
}

/// The process that waits at a doorbell, if its lock file can be read.
pub(crate) fn owner(path: &Path) -> Option<LockOwner> {
    serde_json::from_slice(&fs::read(lock_of(path)).ok()?).ok()
}

/// Removes a doorbell whose process has exited. Returns true if it did. Holds its lock, so that a process that is creating it
/// notices.
pub(crate) fn remove_if_stale(path: &Path) -> bool {
    let lock = lock_of(path);
    match File::open(&lock) {
        Ok(file) if file.try_lock().is_ok() => {
            if is_at(&file, &lock) {
                remove(path);
            }
            true
        }
        // The lock is created first and removed last: without it, no process waits.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            remove(path);
            true
        }
        // The process is alive, or an error such as too many open files hides whether it is.
        _ => false,
    }
}

/// Removes the doorbells of processes that were killed before they registered.
pub(crate) fn remove_stale(home: &Home) {
    for bell in all(home) {
        remove_if_stale(&bell);
    }
}

/// Removes whatever is at a doorbell's path. A non-empty directory stays, and creating the doorbell then fails.
fn remove_any(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

fn remove(path: &Path) {
    remove_any(path);
    let _ = fs::remove_file(lock_of(path));
}

/// All doorbells in the home, registered or not.
pub(crate) fn all(home: &Home) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home.bells()) else { return Vec::new() };
    let mut bells: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path().with_extension("fifo")).collect();
    bells.sort();
    bells.dedup();
    bells
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

/// Creates a FIFO with mode 0600.
#[cfg(not(target_os = "macos"))]
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Creates a FIFO with mode 0600. rustix does not support that on macOS.
#[cfg(target_os = "macos")]
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    use nix::sys::stat::Mode;
    Ok(nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?)
}

fn nonblocking() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn created() -> (tempfile::TempDir, Home, Doorbell) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        home.make_directories().unwrap();
        let owner = LockOwner { pid: 1, started: None, consumer: "lead".into(), scope: "global".into() };
        let bell = Doorbell::create(&home, "a", &owner, None).unwrap();
        (directory, home, bell)
    }

    fn rings(bell: &Doorbell) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn a_ring_stays_until_it_is_drained() {
        let (_directory, _home, bell) = created();
        assert!(!rings(&bell));
        for _ in 0..100_000 {
            wake(&bell.lock.path);
        }
        assert!(rings(&bell));
        assert!(bell.drain().unwrap());
        assert!(!rings(&bell) && !bell.drain().unwrap());
    }

    /// A shell's `>` would create a regular file here, which would break every later listener.
    #[test]
    fn ringing_never_makes_a_doorbell() {
        let (_directory, _home, bell) = created();
        let path = bell.lock.path.clone();
        drop(bell);
        wake(&path);
        assert!(!path.exists());
    }

    /// A regular file in place of the FIFO used to count as a running hub, so that none was started.
    #[test]
    fn what_is_no_doorbell_has_heard_nothing_and_gives_way_to_one() {
        let (_directory, home, bell) = created();
        let owner = owner(&bell.lock.path).unwrap();
        let path = named(&home, "b");
        let make: [&dyn Fn(); 4] = [
            &|| fs::write(&path, "").unwrap(),
            &|| fs::create_dir(&path).unwrap(),
            &|| std::os::unix::fs::symlink(&bell.lock.path, &path).unwrap(),
            &|| std::os::unix::fs::symlink("/dev/null", &path).unwrap(),
        ];
        for (number, make) in make.iter().enumerate() {
            make();
            let is_link_to_bell = number == 2;
            assert_eq!(wake(&path), is_link_to_bell, "{number}");
            let hung = Doorbell::create(&home, "b", &owner, None).unwrap();
            assert!(wake(&path) && rings(&hung), "{number}");
            assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo(), "{number}");
        }
    }

    /// Opening a FIFO without a reader fails at once instead of blocking.
    #[test]
    fn a_doorbell_without_a_reader_is_passed_over() {
        let (directory, _home, bell) = created();
        let orphan = directory.path().join("orphan.fifo");
        make_fifo(&orphan).unwrap();
        wake(&orphan);
        assert!(!is_alive(&orphan) && is_alive(&bell.lock.path));
    }

    #[test]
    fn the_dead_leave_nothing() {
        let (_directory, home, bell) = created();
        assert_eq!(all(&home), std::slice::from_ref(&bell.lock.path));
        assert_eq!(owner(&bell.lock.path).unwrap().consumer, "lead");
        assert!(!remove_if_stale(&bell.lock.path), "a live process keeps its doorbell");
        drop(bell);
        assert!(all(&home).is_empty());
    }

    /// After the home was removed and recreated, another process may have the same name.
    #[test]
    fn one_that_is_gone_leaves_alone_what_has_its_name() {
        let (_directory, home, bell) = created();
        let owner = owner(&bell.lock.path).unwrap();
        assert!(!bell.is_gone());
        fs::remove_file(lock_of(&bell.lock.path)).unwrap();
        assert!(bell.is_gone(), "another process can have its name");
        fs::remove_dir_all(home.bells()).unwrap();
        assert!(bell.is_gone());
        home.make_directories().unwrap();
        let other = Doorbell::create(&home, "a", &owner, None).unwrap();
        assert!(bell.is_gone() && !other.is_gone());
        drop(bell);
        assert!(!other.is_gone() && is_alive(&other.lock.path) && wake(&other.lock.path));
    }

    #[test]
    fn what_the_killed_leave_is_cleared() {
        let (_directory, home, bell) = created();
        let dead = home.bells().join("dead.fifo");
        make_fifo(&dead).unwrap();
        fs::write(lock_of(&dead), "{}").unwrap();
        assert!(remove_if_stale(&dead));
        assert_eq!(all(&home), std::slice::from_ref(&bell.lock.path));
    }
}
