//! Replaces files on a separate thread, so that a file system that hangs blocks nothing else.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ringer_platform::{Durability, replace_file, wake};

/// Decides whether a missing directory is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directory {
    Exists,
    Make,
}

/// The result of replacing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) is_written: bool,
    /// The directory did not exist, so it has no other files.
    pub(crate) is_first: bool,
}

#[derive(Debug)]
enum Change {
    Replace(Vec<u8>),
    Remove,
}

#[derive(Debug, Default)]
struct Queue {
    /// The latest change of each file, in the order in which the files were queued.
    waiting: VecDeque<(String, Change)>,
    is_writing: bool,
    outcomes: Vec<Outcome>,
    is_over: bool,
}

impl Queue {
    fn is_free(&self) -> bool {
        self.waiting.is_empty() && !self.is_writing
    }
}

#[derive(Debug, Default)]
struct SharedQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces and removes files of one directory in order. If several changes of a file are queued, only the latest is made.
#[derive(Debug)]
pub(crate) struct FileWriter {
    shared: Arc<SharedQueue>,
}

impl FileWriter {
    /// Starts the thread. It wakes the other end of `wakes` after each change.
    pub(crate) fn start(path: PathBuf, directory: Directory, wakes: Arc<UnixStream>) -> io::Result<Self> {
        let shared = Arc::new(SharedQueue::default());
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("file writer".to_owned())
            .spawn(move || make_changes(&own, &path, directory, &wakes))?;
        Ok(Self { shared })
    }

    /// Replaces a file. An [`Outcome`] follows.
    pub(crate) fn replace(&self, name: &str, bytes: Vec<u8>) {
        self.change(name, Change::Replace(bytes));
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) {
        self.change(name, Change::Remove);
    }

    fn change(&self, name: &str, change: Change) {
        let mut queue = self.shared.queue();
        match queue.waiting.iter_mut().find(|(waiting, _)| waiting == name) {
            Some((_, waiting)) => *waiting = change,
            None => queue.waiting.push_back((name.to_owned(), change)),
        }
        self.shared.changed.notify_all();
    }

    /// Returns true if all changes are made.
    pub(crate) fn is_free(&self) -> bool {
        self.shared.queue().is_free()
    }

    /// Waits until all changes are made, or until a deadline. Returns true if they are made.
    pub(crate) fn wait_until_free(&self, until: Instant) -> bool {
        let within = until.saturating_duration_since(Instant::now());
        let waited =
            self.shared.changed.wait_timeout_while(self.shared.queue(), within, |queue| !queue.is_free());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_free()
    }

    /// Returns the outcomes since the last call.
    pub(crate) fn take_outcomes(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.shared.queue().outcomes)
    }
}

impl Drop for FileWriter {
    /// The thread ends after the queued changes. It is not joined, because it may hang.
    fn drop(&mut self) {
        self.shared.queue().is_over = true;
        self.shared.changed.notify_all();
    }
}

fn make_changes(shared: &SharedQueue, path: &Path, directory: Directory, wakes: &UnixStream) {
    loop {
        let is_idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_over;
        let mut queue =
            shared.changed.wait_while(shared.queue(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let Some((name, change)) = queue.waiting.pop_front() else { return };
        queue.is_writing = true;
        drop(queue);
        let is_first = directory == Directory::Make && !path.is_dir();
        let is_written = match &change {
            Change::Replace(bytes) => Some(replace(path, is_first, &name, bytes).is_ok()),
            Change::Remove => {
                // The file may not exist.
                let _ = fs::remove_file(path.join(&name));
                None
            }
        };
        let mut queue = shared.queue();
        queue.is_writing = false;
        queue.outcomes.extend(is_written.map(|is_written| Outcome { name, is_written, is_first }));
        drop(queue);
        shared.changed.notify_all();
        wake(wakes);
    }
}

fn replace(path: &Path, makes_directory: bool, name: &str, bytes: &[u8]) -> io::Result<()> {
    if makes_directory {
        // A logout may have removed the parent directories, too.
        DirBuilder::new().mode(0o700).recursive(true).create(path)?;
    }
    replace_file(&path.join(name), bytes, Durability::Unsynced)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use ringer_platform::wake_pair;
    use test_support::{DEADLINE, HangingDirectory};

    use super::*;

    fn start(path: &Path, directory: Directory) -> (FileWriter, UnixStream) {
        let (woken, wakes) = wake_pair().unwrap();
        woken.set_nonblocking(false).unwrap();
        woken.set_read_timeout(Some(DEADLINE)).unwrap();
        (FileWriter::start(path.to_owned(), directory, Arc::new(wakes)).unwrap(), woken)
    }

    fn soon() -> Instant {
        Instant::now() + DEADLINE
    }

    #[test]
    fn files_are_replaced_and_removed_in_order_and_the_outcome_wakes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("screens");
        let (writer, mut woken) = start(&path, Directory::Make);
        for number in 0..100 {
            writer.replace("a", vec![b'x'; number]);
            writer.remove("b");
            writer.replace("b", b"there".to_vec());
        }
        writer.replace("a", b"last".to_vec());
        writer.remove("c");
        assert!(writer.wait_until_free(soon()));
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "last");
        assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "there");
        woken.read_exact(&mut [0]).unwrap();
        let outcomes = writer.take_outcomes();
        assert!(outcomes.iter().all(|outcome| outcome.is_written), "{outcomes:?}");
        assert!(writer.take_outcomes().is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, _woken) = start(&directory.path().join("missing"), Directory::Exists);
        writer.replace("a", Vec::new());
        assert!(writer.wait_until_free(soon()));
        assert_eq!(
            writer.take_outcomes(),
            [Outcome { name: "a".to_owned(), is_written: false, is_first: false }]
        );
        assert!(!directory.path().join("missing").exists(), "a directory that was removed is not made again");
    }

    #[test]
    fn a_directory_that_hangs_makes_no_caller_wait_and_only_the_newest_of_each_file_waits() {
        let Some(hanging) = HangingDirectory::new() else { return };
        let (writer, _woken) = start(&hanging.path(), Directory::Exists);
        for number in 0..1000 {
            writer.replace("a", vec![b'x'; number]);
            writer.replace("b", vec![b'x'; number]);
        }
        assert!(!writer.is_free() && !writer.wait_until_free(Instant::now() + Duration::from_millis(1)));
        assert!(writer.shared.queue().waiting.len() <= 2);
        hanging.release();
        assert!(writer.wait_until_free(soon()), "what hung has failed");
        assert!(writer.take_outcomes().iter().all(|outcome| !outcome.is_written));
    }

    #[test]
    fn what_waits_is_written_although_the_writer_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, mut woken) = start(directory.path(), Directory::Exists);
        writer.replace("a", b"text".to_vec());
        drop(writer);
        woken.read_exact(&mut [0]).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("a")).unwrap(), "text");
    }
}
