//! Ringer's own files: in its home, and in the runtime and temporary directories.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringer_ipc::discovery::directories_outside;
use ringer_journal::{Home, runtime_directories};

use crate::failure::{Exit, Failure, Outcome};
use crate::output::short_path;

/// Prefixes of file names in the home. Databases have further files beside them, and logs an older one.
const FILES: [&str; 20] = [
    "ringer.db",
    "hub.db",
    "hub.json",
    "hub.lock",
    "hub.log",
    "hub.sock",
    "hub.failed",
    "hooks.log",
    "lost-events",
    "machine-id",
    "panes.json",
    "pty.",
    "relay-",
    "setup.",
    "trusted.json",
    "ui.",
    "channels.json",
    "channels.lock",
    "channel-status.json",
    "write.lock",
];
/// Prefixes of the files that hold the history.
const HISTORY: [&str; 2] = ["ringer.db", "hub.db"];
const DIRECTORIES: [&str; 8] = ["bells", "drop", "locks", "outbox", "screens", "spool", "terminals", "tools"];

pub(super) struct StateFiles {
    home: PathBuf,
    /// The files in the home to remove.
    own: Vec<PathBuf>,
    /// The home also contains other files; then a directory is not taken for Ringer's because of its name.
    has_others: bool,
    keeps_history: bool,
    /// Directories outside the home.
    outside: Vec<PathBuf>,
}

impl StateFiles {
    pub(super) fn find(home: &Home, keeps_history: bool) -> Self {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let (mut own, mut has_others) = (Vec::new(), false);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_own(&name) {
                has_others = true;
            } else if !(keeps_history && HISTORY.iter().any(|history| name.starts_with(history))) {
                own.push(entry.path());
            }
        }
        let outside = [directories_outside(home), runtime_directories(home)].concat();
        let outside = outside.into_iter().filter(|path| !path.starts_with(home.path()) && path.is_dir());
        let mut outside: Vec<PathBuf> = outside.collect();
        outside.dedup();
        Self { home: home.path().to_owned(), own, has_others, keeps_history, outside }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.outside.is_empty()
    }

    /// Returns the paths to show: the home as a whole, unless something in it stays.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let is_whole = !self.has_others && !self.keeps_history;
        let home = Some(self.home.as_path()).filter(|home| is_whole && home.is_dir());
        let parts = self.own.iter().filter(move |_| !is_whole).map(PathBuf::as_path);
        home.into_iter().chain(parts).chain(self.outside.iter().map(PathBuf::as_path))
    }

    /// Removes the files. Returns the home if it stays because of other files in it.
    pub(super) fn remove(&self) -> Result<Option<PathBuf>, Failure> {
        // Listed again, because a hub that exits has written files in the meantime.
        let home = Home::new(&self.home);
        for path in Self::find(&home, self.keeps_history).own {
            match fs::symlink_metadata(&path) {
                Ok(data) if !data.is_dir() => remove_file(&path)?,
                Ok(_) if self.has_others => drop(fs::remove_dir(&path)),
                Ok(_) => ignore_missing(&path, fs::remove_dir_all(&path))?,
                Err(_) => {}
            }
        }
        for path in &self.outside {
            ignore_missing(path, fs::remove_dir_all(path))?;
            // The parent directory of all homes, if this was the last one.
            let _ = path.parent().map(fs::remove_dir);
        }
        if self.keeps_history {
            return Ok(None);
        }
        let is_left = fs::remove_dir(&self.home).is_err_and(|error| error.kind() != ErrorKind::NotFound);
        Ok(is_left.then(|| self.home.clone()))
    }
}

/// Returns true for names that Ringer uses in its home. A file that is being replaced is `.NAME.PID.NUMBER.new`.
fn is_own(name: &str) -> bool {
    let replaced = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    let name = replaced.unwrap_or(name);
    DIRECTORIES.contains(&name) || FILES.iter().any(|file| name.starts_with(file))
}

/// Removes a file. A missing one is not a failure.
pub(super) fn remove_file(path: &Path) -> Outcome {
    ignore_missing(path, fs::remove_file(path))
}

fn ignore_missing(path: &Path, removed: io::Result<()>) -> Outcome {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let what = format!("cannot remove {}", short_path(path));
            Err(Failure::new(Exit::NoPermission, what).because(error).hint("ringer uninstall"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_copies_of_a_session_of_panes_are_known() {
        let names = ["panes.json", ".panes.json.12.1.new", "panes.json.damaged", "panes.json.newer-8"];
        assert!(names.into_iter().all(is_own));
        assert!(!is_own("panes.txt"));
    }
}
