//! Doorbells: how a writer wakes those who wait, without waiting for them.
//!
//! A doorbell carries no data. The journal is the truth, so a ring that is lost loses nothing, and ringing when nobody
//! listens costs microseconds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::lock::{Lock, is_at, is_held};

/// The name of the hub's doorbell: there is one hub, and everybody rings it.
pub(crate) const HUB: &str = "hub";

/// Who waits at a doorbell. Written into the locked file beside it, for people and for `ringer nuke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// When it started, in the kernel's clock ticks: a pid alone may be somebody else's by now.
    pub started: Option<u64>,
    /// What it reads as.
    pub consumer: String,
    /// Where.
    pub scope: String,
}

/// A doorbell of our own: a FIFO that others ring, and a lock that says we are alive.
#[derive(Debug)]
pub(crate) struct Doorbell {
    fifo: File,
    name: String,
    path: PathBuf,
    _alive: Lock,
}

impl Doorbell {
    /// Hangs a doorbell. Under a name that somebody else has, it fails once the deadline has passed.
    pub(crate) fn hang(
        home: &Home,
        name: &str,
        holder: &Holder,
        deadline: Option<Instant>,
    ) -> io::Result<Self> {
        let path = named(home, name);
        let alive = Lock::take(&lock_of(&path), deadline)?.ok_or(ErrorKind::WouldBlock)?;
        // Of a process that had this name and was killed, or not a doorbell at all.
        remove_any(&path);
        alive.file().set_len(0)?;
        let mut line = serde_json::to_vec(holder)?;
        line.push(b'\n');
        alive.file().write_all(&line)?;
        make_fifo(&path)?;
        // Read and write: there is always a writer then, so an idle FIFO does not read as closed.
        let fifo = OpenOptions::new().read(true).write(true).custom_flags(nonblocking()).open(&path)?;
        Ok(Self { fifo, name: name.to_owned(), path, _alive: alive })
    }

    /// Under which others find it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Forgets the rings so far, and gives whether there were any. To be done *before* looking in the journal: what comes
    /// after rings again.
    pub(crate) fn empty(&self) -> io::Result<bool> {
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

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // Whoever finds the files later removes them, if we cannot.
        take_down(&self.path);
    }
}

/// Rings. Never waits, never makes the doorbell; whoever has gone is passed over. Gives whether anybody is there: not
/// behind a file of another kind, which a backup, a shell's `>` or a copy of the home leaves under that name.
pub(crate) fn ring(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).custom_flags(nonblocking()).open(path);
    let Ok(mut fifo) = opened else { return false };
    if !fifo.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return false;
    }
    // A full FIFO has rung already.
    let _ = fifo.write(b"!");
    true
}

/// Rings them all, by their names: with several listeners, the first may die before it has read.
pub(crate) fn ring_all(home: &Home, names: &[String]) {
    for name in names {
        ring(&named(home, name));
    }
}

/// Rings every doorbell of a home, registered or not. Gives whether a hub is there.
pub(crate) fn ring_everything(home: &Home) -> bool {
    let hub = named(home, HUB);
    all(home).iter().filter(|bell| **bell != hub).for_each(|bell| {
        ring(bell);
    });
    ring(&hub)
}

/// The doorbell of that name.
pub(crate) fn named(home: &Home, name: &str) -> PathBuf {
    home.bells().join(name).with_extension("fifo")
}

/// Whether the process behind a doorbell is alive.
pub(crate) fn is_alive(path: &Path) -> bool {
    is_held(&lock_of(path))
}

/// Who waits behind a doorbell, if its file can be read.
pub(crate) fn holder(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&fs::read(lock_of(path)).ok()?).ok()
}

/// Removes a doorbell whose owner has gone. Under its lock, so that an owner who is just hanging it notices.
pub(crate) fn clear_if_dead(path: &Path) -> bool {
    let lock = lock_of(path);
    match File::open(&lock) {
        Ok(file) if file.try_lock().is_ok() => {
            if is_at(&file, &lock) {
                take_down(path);
            }
            true
        }
        // The lock is made first and removed last: without it, no process waits there.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            take_down(path);
            true
        }
        // Its owner lives. An error says nothing about that: too many open files, for example.
        _ => false,
    }
}

/// Removes what the killed left before they were registered.
pub(crate) fn clear_strays(home: &Home) {
    for bell in all(home) {
        clear_if_dead(&bell);
    }
}

/// Removes what has the name of a doorbell. A directory with something in it stays, and hanging one fails.
fn remove_any(path: &Path) {
    // Gone already is as good.
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

fn take_down(path: &Path) {
    remove_any(path);
    let _ = fs::remove_file(lock_of(path));
}

/// Every doorbell in the home, registered or not.
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

/// Makes a FIFO that is its owner's alone.
#[cfg(not(target_os = "macos"))]
fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Makes a FIFO that is its owner's alone. rustix has none for macOS.
#[cfg(target_os = "macos")]
fn make_fifo(path: &Path) -> io::Result<()> {
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

    fn hung() -> (tempfile::TempDir, Home, Doorbell) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        home.make_directories().unwrap();
        let holder = Holder { pid: 1, started: None, consumer: "lead".into(), scope: "global".into() };
        let bell = Doorbell::hang(&home, "a", &holder, None).unwrap();
        (directory, home, bell)
    }

    fn rings(bell: &Doorbell) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn a_ring_stays_until_it_is_forgotten() {
        let (_directory, _home, bell) = hung();
        assert!(!rings(&bell));
        for _ in 0..100_000 {
            ring(&bell.path);
        }
        assert!(rings(&bell));
        assert!(bell.empty().unwrap());
        assert!(!rings(&bell) && !bell.empty().unwrap());
    }

    /// R2: in the plan the shell created a regular file here, and every later listener died of it.
    #[test]
    fn ringing_never_makes_a_doorbell() {
        let (_directory, _home, bell) = hung();
        let path = bell.path.clone();
        drop(bell);
        ring(&path);
        assert!(!path.exists());
    }

    /// No hub was started any more: whoever rang believed that one had heard it.
    #[test]
    fn what_is_no_doorbell_has_heard_nothing_and_gives_way_to_one() {
        let (_directory, home, bell) = hung();
        let holder = holder(&bell.path).unwrap();
        let path = named(&home, "b");
        let make: [&dyn Fn(); 4] = [
            &|| fs::write(&path, "").unwrap(),
            &|| fs::create_dir(&path).unwrap(),
            &|| std::os::unix::fs::symlink(&bell.path, &path).unwrap(),
            &|| std::os::unix::fs::symlink("/dev/null", &path).unwrap(),
        ];
        for (number, make) in make.iter().enumerate() {
            make();
            let is_link_to_bell = number == 2;
            assert_eq!(ring(&path), is_link_to_bell, "{number}");
            let hung = Doorbell::hang(&home, "b", &holder, None).unwrap();
            assert!(ring(&path) && rings(&hung), "{number}");
            assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo(), "{number}");
        }
    }

    /// R3, R4: in the plan each notify stalled for a second here. A FIFO without a reader is refused at once.
    #[test]
    fn a_doorbell_without_a_reader_is_passed_over() {
        let (directory, _home, bell) = hung();
        let orphan = directory.path().join("orphan.fifo");
        make_fifo(&orphan).unwrap();
        ring(&orphan);
        assert!(!is_alive(&orphan) && is_alive(&bell.path));
    }

    #[test]
    fn the_dead_leave_nothing() {
        let (_directory, home, bell) = hung();
        assert_eq!(all(&home), std::slice::from_ref(&bell.path));
        assert_eq!(holder(&bell.path).unwrap().consumer, "lead");
        assert!(!clear_if_dead(&bell.path), "the living keep theirs");
        drop(bell);
        assert!(all(&home).is_empty());
    }

    #[test]
    fn what_the_killed_leave_is_cleared() {
        let (_directory, home, bell) = hung();
        let dead = home.bells().join("dead.fifo");
        make_fifo(&dead).unwrap();
        fs::write(lock_of(&dead), "{}").unwrap();
        assert!(clear_if_dead(&dead));
        assert_eq!(all(&home), std::slice::from_ref(&bell.path));
    }
}
