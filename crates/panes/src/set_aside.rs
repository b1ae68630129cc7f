//! Renames a session file that cannot be used, because the next save would replace it.

use std::io;
use std::path::Path;
use std::time::SystemTime;
use std::{fmt, fs};

use crate::address::SESSION;

/// The most copies of each kind. One more replaces the oldest.
const MAX_KEPT: usize = 9;

/// The reason a session cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnusableSession {
    Damaged,
    /// A newer version of the program wrote it.
    Newer,
}

impl UnusableSession {
    /// Converts the error of [`SavedSession::read`](crate::saved_session::SavedSession::read).
    pub(crate) fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::Unsupported { Self::Newer } else { Self::Damaged }
    }

    /// Renames the session file of a home. Returns the new name.
    pub(crate) fn set_aside(self, home: &Path) -> io::Result<String> {
        let ending = match self {
            Self::Damaged => "damaged",
            Self::Newer => "newer",
        };
        let numbered = (1..MAX_KEPT).map(|number| format!("{SESSION}.{ending}-{number}"));
        let names = std::iter::once(format!("{SESSION}.{ending}")).chain(numbered);
        // A file cannot replace a directory.
        let names = names.filter(|name| !home.join(name).is_dir());
        let name =
            names.min_by_key(|name| written_at(&home.join(name))).ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(home.join(SESSION), home.join(&name))?;
        Ok(name)
    }
}

impl fmt::Display for UnusableSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the layout could not be read",
            Self::Newer => "the layout is of a newer Ringer",
        })
    }
}

/// The modification time of a file, or `None`, which sorts before all times, if it does not exist.
fn written_at(path: &Path) -> Option<SystemTime> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // An unknown file counts as new, so that it is not replaced.
        found => Some(found.and_then(|found| found.modified()).unwrap_or_else(|_| SystemTime::now())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    /// Writes a session that was modified at this second, and sets it aside.
    fn set_aside(home: &Path, reason: UnusableSession, second: u64) -> io::Result<String> {
        let path = home.join(SESSION);
        fs::write(&path, second.to_string()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
        reason.set_aside(home)
    }

    #[test]
    fn each_copy_has_its_own_name_until_the_oldest_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        for reason in [UnusableSession::Damaged, UnusableSession::Newer] {
            let ending = if reason == UnusableSession::Damaged { "damaged" } else { "newer" };
            let name = |number: u64| match number {
                0 => format!("panes.json.{ending}"),
                number => format!("panes.json.{ending}-{number}"),
            };
            for number in 0..9 {
                // The fourth one was written before all others.
                let second = if number == 3 { 1 } else { 100 + number };
                assert_eq!(set_aside(home, reason, second).unwrap(), name(number));
            }
            assert!(!home.join(SESSION).exists());
            assert_eq!(set_aside(home, reason, 200).unwrap(), name(3));
            assert_eq!(set_aside(home, reason, 201).unwrap(), name(0));
            assert_eq!(set_aside(home, reason, 202).unwrap(), name(1));
            fs::remove_file(home.join(name(5))).unwrap();
            assert_eq!(set_aside(home, reason, 203).unwrap(), name(5));
            let kept = |number: u64| fs::read_to_string(home.join(name(number))).unwrap();
            assert_eq!([0, 1, 2, 3, 4, 5, 8].map(kept), ["201", "202", "102", "200", "104", "203", "108"]);
        }
        assert_eq!(fs::read_dir(home).unwrap().count(), 2 * MAX_KEPT);
    }

    #[test]
    fn no_directory_is_replaced_and_one_can_be_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let (home, reason) = (directory.path(), UnusableSession::Damaged);
        fs::create_dir(home.join(SESSION)).unwrap();
        fs::write(home.join(SESSION).join("file"), "").unwrap();
        assert_eq!(reason.set_aside(home).unwrap(), "panes.json.damaged");
        for number in 1..9 {
            set_aside(home, reason, number).unwrap();
        }
        let old = File::open(home.join("panes.json.damaged")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(set_aside(home, reason, 20).unwrap(), "panes.json.damaged-1");
        assert!(home.join("panes.json.damaged").join("file").exists());
        assert!(reason.set_aside(home).is_err(), "there is nothing to set aside");
        assert_eq!(fs::read_dir(home).unwrap().count(), MAX_KEPT);
    }
}
