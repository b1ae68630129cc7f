//! The lock that a client takes while it writes a file: a directory beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::error::SetupError;

/// After so long a lock is what a client left that was killed. Claude Code touches its own every 5 s.
const STALE: Duration = Duration::from_secs(10);

/// How long to wait for it: longer than one can be left behind.
const PATIENCE: Duration = Duration::from_secs(12);

/// How often to try.
const INTERVAL: Duration = Duration::from_millis(20);

/// Keeps the client from writing until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientLock(PathBuf);

impl ClientLock {
    /// Waits until the client has written, and takes its lock. There is none where the directory for it is not there: then
    /// the client has never written.
    pub(crate) fn take(path: &Path) -> Result<Option<Self>, SetupError> {
        let begin = Instant::now();
        loop {
            match fs::create_dir(path) {
                Ok(()) => return Ok(Some(Self(path.to_path_buf()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists || begin.elapsed() > PATIENCE => {
                    return Err(SetupError::io("waiting for the lock", path)(error));
                }
                Err(_) if is_stale(path) => {
                    // If that fails, another one has it, or it will be reported in the end.
                    drop(fs::remove_dir(path));
                }
                Err(_) => thread::sleep(INTERVAL),
            }
        }
    }
}

impl Drop for ClientLock {
    fn drop(&mut self) {
        // If it stays, it is stale soon.
        drop(fs::remove_dir(&self.0));
    }
}

fn is_stale(path: &Path) -> bool {
    let touched = fs::metadata(path).and_then(|metadata| metadata.modified());
    touched.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > STALE))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn one_at_a_time_and_none_that_was_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json.lock");
        let held = ClientLock::take(&path).unwrap().unwrap();
        let waiting = thread::spawn({
            let path = path.clone();
            move || ClientLock::take(&path).unwrap().is_some()
        });
        assert!(path.is_dir() && !waiting.is_finished());
        drop(held);
        assert!(waiting.join().unwrap());
        assert!(!path.exists());

        fs::create_dir(&path).unwrap();
        let long_ago = SystemTime::now() - STALE - Duration::from_secs(1);
        File::open(&path).unwrap().set_modified(long_ago).unwrap();
        drop(ClientLock::take(&path).unwrap().unwrap());
        assert!(!path.exists());
        assert!(ClientLock::take(&directory.path().join("nowhere/a.lock")).unwrap().is_none());
    }

    #[test]
    fn what_is_no_lock_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file/a.lock");
        fs::write(directory.path().join("file"), "").unwrap();
        let error = ClientLock::take(&path).unwrap_err().to_string();
        assert!(error.contains("waiting for the lock"), "{error}");
    }
}
