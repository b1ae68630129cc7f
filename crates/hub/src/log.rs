//! The hub's log: a file of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use ringer_term::sanitise_line;

use crate::clock::Clock;

/// A log longer than this is renamed to `hub.log.old`, replacing the previous one.
const MAX_LOG: u64 = 1024 * 1024;

/// The hub's log. Cheap to clone. A log that cannot be written is silent.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    clock: Clock,
    /// Writes to standard error too, with `--foreground`.
    aloud: bool,
}

impl Log {
    /// Returns a log in this file, which is opened with the first line. A process must have only one: another one would keep
    /// writing to the old file after this one starts a new file.
    pub fn new(path: PathBuf, aloud: bool) -> Self {
        let shared = Shared { path, file: None, length: 0, clock: Clock::local(), aloud };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Writes a line. The text may come from anywhere, so it is sanitised.
    pub fn line(&self, text: impl AsRef<str>) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).line(text.as_ref());
    }

    /// Writes a line to the file only, for texts that the person sees elsewhere.
    pub(crate) fn quiet_line(&self, text: impl AsRef<str>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let line = shared.stamped(text.as_ref());
        shared.write(line.as_bytes());
    }

    /// Writes a line about a panic. Skips it if the log is locked, because this very thread may hold the lock.
    pub(crate) fn line_unless_busy(&self, text: impl AsRef<str>) {
        match self.shared.try_lock() {
            Ok(mut shared) => shared.line(text.as_ref()),
            Err(TryLockError::Poisoned(shared)) => shared.into_inner().line(text.as_ref()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

impl Shared {
    fn line(&mut self, text: &str) {
        let line = self.stamped(text);
        if self.aloud {
            eprint!("{line}");
        }
        self.write(line.as_bytes());
    }

    fn stamped(&self, text: &str) -> String {
        let stamp = self.clock.stamp(self.clock.now().wall_ms);
        format!("{stamp} {}\n", sanitise_line(text))
    }

    fn write(&mut self, line: &[u8]) {
        if self.length > MAX_LOG {
            let _ = fs::rename(&self.path, self.path.with_extension("log.old"));
            self.file = None;
        }
        if self.file.is_none() {
            // At the very first start, the directory does not exist yet.
            (self.file, self.length) = open(&self.path);
        }
        if let Some(file) = &mut self.file
            && file.write_all(line).is_ok()
        {
            self.length += line.len() as u64;
        }
    }
}

fn open(path: &PathBuf) -> (Option<File>, u64) {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).ok();
    let length = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len());
    (file, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_soon_as_there_is_a_directory_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home/hub.log");
        let log = Log::new(path.clone(), false);
        log.line("lost");
        fs::create_dir(directory.path().join("home")).unwrap();
        log.line("kept");
        assert!(fs::read_to_string(&path).unwrap().ends_with(" kept\n"));
    }

    #[test]
    fn it_stays_bounded_and_one_line_is_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hub.log");
        let log = Log::new(path.clone(), false);
        log.line("two\nlines \x1b[31m");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        for _ in 0..3000 {
            log.line("x".repeat(1000));
        }
        let size = |path: PathBuf| fs::metadata(path).unwrap().len();
        assert!(size(path.clone()) < MAX_LOG + 2048);
        assert!(size(path.with_extension("log.old")) < MAX_LOG + 2048);
    }
}
