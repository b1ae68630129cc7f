//! Backups of settings files, next to the file: `settings.json.ringer-backup-20261115-060000`.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::SetupError;
use super::files::sibling_path;

/// Separates the name of a file and the time in the name of its backup.
const BACKUP: &str = ".ringer-backup-";

/// Length of a time such as `20261115-060000`.
const TIME_LENGTH: usize = 15;

/// The time in the name of a backup, `20261115-060000`. The caller has the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupTime(String);

impl BackupTime {
    /// Parses a time of the form `YYYYMMDD-HHMMSS`.
    pub fn new(text: &str) -> Result<Self, SetupError> {
        if is_time(text) { Ok(Self(text.to_owned())) } else { Err(SetupError::BackupTime(text.to_owned())) }
    }

    /// The path of a backup of a file; `number` counts the backups of the same second from 1.
    pub(crate) fn backup_of(&self, path: &Path, number: usize) -> PathBuf {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        sibling_path(path, "", &format!("{BACKUP}{}{suffix}", self.0))
    }
}

/// Existing backups of a file, newest first.
pub fn backups(path: &Path) -> Vec<PathBuf> {
    let Some(directory) = path.parent() else { return Vec::new() };
    let prefix = format!("{}{BACKUP}", path.file_name().unwrap_or_default().to_string_lossy());
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.strip_prefix(&prefix).is_some_and(is_time_and_number))
        .collect();
    names.sort_unstable_by(|one, two| two.cmp(one));
    names.into_iter().map(|name| directory.join(name)).collect()
}

/// `20261115-060000`, followed by `-2` for the second backup of that second.
fn is_time_and_number(text: &str) -> bool {
    let (time, rest) = text.split_at_checked(TIME_LENGTH).unwrap_or_default();
    let number = rest.strip_prefix('-');
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_time(time) && (rest.is_empty() || number.is_some_and(is_number))
}

fn is_time(text: &str) -> bool {
    text.len() == TIME_LENGTH
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 8 { byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_backups_of_that_file_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let time = BackupTime::new("20261115-060000").unwrap();
        let own = [time.backup_of(&path, 2), time.backup_of(&path, 1)];
        for file in &own {
            fs::write(file, "").unwrap();
        }
        for name in ["a.json", "b.json.ringer-backup-20261115-060000", "a.json.ringer-backup-mine"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        fs::write(directory.path().join("a.json.ringer-backup-20261115-060000.txt"), "").unwrap();
        assert_eq!(backups(&path), own);
    }
}
