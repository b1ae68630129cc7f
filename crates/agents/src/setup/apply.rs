//! Applies a [`Plan`].
//!
//! For each changed file, in this order: a dated backup next to it, the record ([`SetupRecords`]), the replacement. A crash at
//! any point leaves the old or the new file, and a record that is true of both. Backups are named `settings.json.ringer-backup-20261115-060000`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{io, thread};

use super::error::SetupError;
use super::files::{BeforeStep, Step, announce, read, replace, resolve, write_new};
use super::plan::{FileChange, Plan, SetupAction, read_targets};
use super::record::{OriginalFile, SetupRecord, SetupRecords, fingerprint};
use crate::setup::files::sibling_path;

/// Maximum backups of a file. The backup from before the first setup is kept in addition.
pub const MAX_BACKUPS: usize = 5;

/// Maximum backups of one file within the same second.
const MAX_SAME_SECOND: usize = 99;

/// The result of applying a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyResult {
    /// Files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were deleted.
    pub deleted: Vec<PathBuf>,
    /// Backups that were made.
    pub backups: Vec<PathBuf>,
}

/// Applies a plan. `state` is the directory of the record; it is created if necessary.
pub fn apply(plan: &Plan, state: &Path, time: &BackupTime) -> Result<ApplyResult, SetupError> {
    apply_with_observer(plan, state, time, &mut |_| Ok(()))
}

/// Applies a plan and calls `before_step` before each [`Step`]. Its error stops there, as a full disk would.
pub fn apply_with_observer(
    plan: &Plan,
    state: &Path,
    time: &BackupTime,
    before_step: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<ApplyResult, SetupError> {
    let mut applied = ApplyResult::default();
    if plan.is_empty() {
        return Ok(applied);
    }
    fs::create_dir_all(state).map_err(SetupError::io("making", state))?;
    let _lock = lock(state)?;
    let mut records = SetupRecords::load(state)?;
    let mut empty = Vec::new();
    for planned in plan.changes.iter().filter(|change| change.is_change()) {
        let _client_lock = planned.target.lock.as_deref().map(ClientLock::take).transpose()?.flatten();
        let change = &replan(plan, planned, &records)?;
        if !change.is_change() {
            continue;
        }
        let mut update = FileUpdate {
            state,
            time,
            records: &mut records,
            applied: &mut applied,
            empty: &mut empty,
            before_step,
        };
        match plan.action {
            SetupAction::Remove(_) if !change.keeps_entries => update.remove(change)?,
            // The remaining entries are recorded as after a setup.
            SetupAction::Setup(..) | SetupAction::Remove(_) => update.set_up(change)?,
        }
    }
    // Delete directories last: the files of one client share them. The longest path is the deepest.
    empty.sort_unstable_by_key(|directory| std::cmp::Reverse(directory.as_os_str().len()));
    for directory in empty {
        // This fails for a directory that is not empty, which stays.
        drop(fs::remove_dir(directory));
    }
    Ok(applied)
}

/// Plans a change again for the current content of its file. A file that its client also writes may have changed since the plan
/// was made; Ringer's change stays the same.
fn replan<'a>(
    plan: &Plan,
    planned: &'a FileChange,
    records: &SetupRecords,
) -> Result<Cow<'a, FileChange>, SetupError> {
    if planned.target.lock.is_none() {
        return Ok(Cow::Borrowed(planned));
    }
    let files = read_targets(vec![planned.target.clone()], records)?;
    let changes = super::plan::plan(plan.client, &plan.action, files)?.changes;
    Ok(changes.into_iter().next().map_or(Cow::Borrowed(planned), Cow::Owned))
}

/// The state for changing one file.
struct FileUpdate<'a> {
    state: &'a Path,
    time: &'a BackupTime,
    records: &'a mut SetupRecords,
    applied: &'a mut ApplyResult,
    /// Directories that setup created and that may be empty now.
    empty: &'a mut Vec<PathBuf>,
    before_step: BeforeStep<'a>,
}

impl FileUpdate<'_> {
    fn set_up(&mut self, change: &FileChange) -> Result<(), SetupError> {
        let (path, real) = (change.path(), resolve(change.path())?);
        announce(self.before_step, Step::MakeDirectory, path)?;
        let mut made = make_directory(&real)?;
        // A file that Ringer wrote needs no backup; the one from before the first setup stays.
        let backup = if self.is_as_written(change) { None } else { self.back_up(change)? };

        let old = self.records.get(path).filter(|_| change.untouched).cloned();
        let original = match (old, backup, &change.before) {
            // A second setup over an unmodified first one still leads back to the original.
            (Some(old), _, _) => {
                made = [old.made, made].concat();
                old.original
            }
            (None, Some(path), Some(bytes)) => OriginalFile::Backup { path, fingerprint: fingerprint(bytes) },
            _ => OriginalFile::Absent,
        };
        let left =
            [&change.after, &change.before].into_iter().flatten().map(|bytes| fingerprint(bytes)).collect();
        announce(self.before_step, Step::WriteRecord, path)?;
        self.records.put(path, SetupRecord { left, original, made });
        self.save_records()?;

        replace(&real, change.before.as_deref(), change.after.as_deref(), self.before_step)?;
        self.applied.written.push(path.to_path_buf());
        self.prune_backups(path)
    }

    fn remove(&mut self, change: &FileChange) -> Result<(), SetupError> {
        let (path, real) = (change.path(), resolve(change.path())?);
        // A file that Ringer wrote and the person did not change needs no backup.
        if !change.untouched {
            self.back_up(change)?;
        }
        replace(&real, change.before.as_deref(), change.after.as_deref(), self.before_step)?;
        let list = if change.after.is_some() { &mut self.applied.written } else { &mut self.applied.deleted };
        list.push(path.to_path_buf());

        announce(self.before_step, Step::RemoveRecord, path)?;
        if let Some(record) = self.records.remove(path) {
            self.save_records()?;
            self.empty.extend(record.made);
        }
        self.prune_backups(path)?;
        if let Some(restored) = change.after.as_deref().filter(|_| change.untouched) {
            delete_copies(path, restored);
        }
        Ok(())
    }

    /// Returns true if a file has exactly the bytes that the last setup wrote.
    fn is_as_written(&self, change: &FileChange) -> bool {
        let written = self.records.get(change.path()).and_then(|record| record.left.first());
        written.is_some_and(|written| {
            change.before.as_deref().is_some_and(|bytes| fingerprint(bytes) == *written)
        })
    }

    /// Copies the old bytes to a backup next to the path that the user knows.
    fn back_up(&mut self, change: &FileChange) -> Result<Option<PathBuf>, SetupError> {
        let Some(bytes) = &change.before else { return Ok(None) };
        announce(self.before_step, Step::WriteBackup, change.path())?;
        for number in 1..=MAX_SAME_SECOND {
            let backup = self.time.backup_of(change.path(), number);
            match write_new(&backup, bytes, Some(change.path())) {
                Ok(()) => self.applied.backups.push(backup.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // The same bytes in the same second: the previous run was interrupted.
                    if !matches!(read(&backup), Ok(Some(found)) if found == *bytes) {
                        continue;
                    }
                }
                Err(error) => return Err(SetupError::io("writing", &backup)(error)),
            }
            return Ok(Some(backup));
        }
        let full = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(SetupError::io("making a backup of", change.path())(full))
    }

    fn save_records(&self) -> Result<(), SetupError> {
        let (path, bytes) = self.records.file(self.state)?;
        let before = read(&path)?;
        replace(&path, before.as_deref(), Some(&bytes), &mut |_| Ok(()))
    }

    /// Deletes the backups of a file beyond the newest [`MAX_BACKUPS`].
    fn prune_backups(&mut self, path: &Path) -> Result<(), SetupError> {
        announce(self.before_step, Step::PruneBackups, path)?;
        let old = backups(path).into_iter().skip(MAX_BACKUPS);
        for backup in old.filter(|backup| !self.records.uses_backup(backup)) {
            // A leftover backup is not a failure of the setup.
            drop(fs::remove_file(backup));
        }
        Ok(())
    }
}

/// Deletes the backups that equal a restored file.
fn delete_copies(path: &Path, restored: &[u8]) {
    for backup in backups(path) {
        if matches!(read(&backup), Ok(Some(bytes)) if bytes == restored) {
            // A leftover backup is not a failure of the removal.
            drop(fs::remove_file(backup));
        }
    }
}

/// Creates the directory of a file and returns the levels that were missing.
fn make_directory(path: &Path) -> Result<Vec<PathBuf>, SetupError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let missing = directory.ancestors().take_while(|level| !level.as_os_str().is_empty() && !level.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    missing.reverse();
    fs::create_dir_all(directory).map_err(SetupError::io("making", directory))?;
    Ok(missing)
}

/// Locks the record until the lock is dropped; two setups at once would overwrite each other's record.
fn lock(state: &Path) -> Result<File, SetupError> {
    let path = state.join("setup.lock");
    let file =
        File::options().create(true).append(true).open(&path).map_err(SetupError::io("opening", &path))?;
    file.lock().map_err(SetupError::io("locking", &path))?;
    Ok(file)
}

/// A lock this old was left behind by a client that was killed. Claude Code touches its own every 5 s.
const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);

/// How long to wait for the lock: longer than a stale one lasts.
const LOCK_TIMEOUT: Duration = Duration::from_secs(12);

const LOCK_RETRY_EVERY: Duration = Duration::from_millis(20);

/// The lock that a client takes while it writes a file: a directory next to the file. Keeps the client from writing until it is
/// dropped.
#[derive(Debug)]
struct ClientLock(PathBuf);

impl ClientLock {
    /// Waits for the client's lock and takes it. `None` if the parent directory does not exist: then the client has never
    /// written.
    pub(crate) fn take(path: &Path) -> Result<Option<Self>, SetupError> {
        let begin = Instant::now();
        loop {
            match fs::create_dir(path) {
                Ok(()) => return Ok(Some(Self(path.to_path_buf()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error)
                    if error.kind() != io::ErrorKind::AlreadyExists || begin.elapsed() > LOCK_TIMEOUT =>
                {
                    return Err(SetupError::io("waiting for the lock", path)(error));
                }
                Err(_) if is_stale(path) => {
                    // If this fails, another process has the lock, or the error is reported in the end.
                    drop(fs::remove_dir(path));
                }
                Err(_) => thread::sleep(LOCK_RETRY_EVERY),
            }
        }
    }
}

impl Drop for ClientLock {
    fn drop(&mut self) {
        // If this fails, the lock soon becomes stale.
        drop(fs::remove_dir(&self.0));
    }
}

fn is_stale(path: &Path) -> bool {
    let touched = fs::metadata(path).and_then(|metadata| metadata.modified());
    touched.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > LOCK_STALE_AFTER))
}

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
    fn backup_of(&self, path: &Path, number: usize) -> PathBuf {
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
        let long_ago = SystemTime::now() - LOCK_STALE_AFTER - Duration::from_secs(1);
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
