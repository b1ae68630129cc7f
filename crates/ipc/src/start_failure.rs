//! Why the last hub could not run: kept until one does, so that commands and `ringer doctor` can say it. A hub starts in
//! the background, where its errors are not seen.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringer_journal::Home;
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::discovery::{make_directory, places, read_own};

const FILE: &str = "hub.failed";
/// The longest reason that is kept, in bytes. Errors name a path or two.
const MAX_REASON: usize = 8 * 1024;

/// Why and when a hub could not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// Why, in words.
    pub why: String,
}

impl StartFailure {
    /// Why the last hub of that home could not run. `None` if it ran.
    pub fn read(home: &Home, runtime: Option<&Path>) -> Option<Self> {
        let found = files(home, runtime)
            .into_iter()
            .filter_map(|file| serde_json::from_slice::<Self>(&read_own(&file, 2 * MAX_REASON as u64)?).ok());
        found.max_by_key(|failure| failure.unix_ms)
    }

    /// Keeps it in the first place that can be written: the runtime directory is there when the home's disk is full or
    /// cannot be written, which is why most hubs do not start.
    pub fn write(mut self, home: &Home, runtime: Option<&Path>) -> io::Result<()> {
        self.why.truncate(self.why.floor_char_boundary(MAX_REASON));
        let text = serde_json::to_vec(&self)?;
        let mut failed = io::ErrorKind::NotFound.into();
        for place in places(home, runtime) {
            match make_directory(&place)
                .and_then(|directory| replace_file(&directory.join(FILE), &text, Durability::Unsynced))
            {
                Ok(()) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// A hub runs: there is nothing to say any more.
    pub fn remove(home: &Home, runtime: Option<&Path>) {
        for file in files(home, runtime) {
            let _ = fs::remove_file(file);
        }
    }
}

fn files(home: &Home, runtime: Option<&Path>) -> Vec<PathBuf> {
    places(home, runtime).iter().map(|place| place.directory().join(FILE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_reason_is_kept_until_a_hub_runs() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        let runtime = directory.path().join("run");
        fs::create_dir(home.path()).unwrap();
        fs::create_dir(&runtime).unwrap();
        assert_eq!(StartFailure::read(&home, Some(&runtime)), None);
        let failure = |unix_ms, why: &str| StartFailure { unix_ms, why: why.to_owned() };
        failure(1, "in the home").write(&home, None).unwrap();
        failure(2, "in the runtime directory").write(&home, Some(&runtime)).unwrap();
        let read = StartFailure::read(&home, Some(&runtime)).unwrap();
        assert_eq!(read, failure(2, "in the runtime directory"));
        failure(3, &"ä".repeat(100_000)).write(&home, Some(&runtime)).unwrap();
        let read = StartFailure::read(&home, Some(&runtime)).unwrap();
        assert!(read.unix_ms == 3 && read.why.len() <= MAX_REASON);
        StartFailure::remove(&home, Some(&runtime));
        assert_eq!(StartFailure::read(&home, Some(&runtime)), None);
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
