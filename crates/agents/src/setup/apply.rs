//! Carrying out a [`Plan`].
//!
//! For each file that changes, in this order: a dated backup beside it, the record ([`SetupRecords`]), the replacement. So a
//! crash at any point leaves the old file or the new one, and a record that is true of both.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::backup::{BackupTime, backups};
use super::error::SetupError;
use super::files::{BeforeStep, Step, ask, read, replace, resolve, write_new};
use super::plan::{FileChange, Plan, SetupAction, read_targets};
use super::record::{OriginalFile, SetupRecord, SetupRecords, fingerprint};

/// How many backups of a file are kept. The backup of the file from before the setup is kept in addition.
pub const MAX_BACKUPS: usize = 5;

/// How many backups may bear the same second; the next one is refused.
const MAX_SAME_SECOND: usize = 99;

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// The files that were deleted.
    pub deleted: Vec<PathBuf>,
    /// The backups that were made.
    pub backups: Vec<PathBuf>,
}

/// Applies a plan. `state` is the directory of the record; it is created if it does not exist.
pub fn apply(plan: &Plan, state: &Path, time: &BackupTime) -> Result<Applied, SetupError> {
    apply_with_observer(plan, state, time, &mut |_| Ok(()))
}

/// Carries out a plan, and asks before each [`Step`]. An error from `before_step` stops there, as a full disk would.
pub fn apply_with_observer(
    plan: &Plan,
    state: &Path,
    time: &BackupTime,
    before_step: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<Applied, SetupError> {
    let mut applied = Applied::default();
    if plan.is_empty() {
        return Ok(applied);
    }
    fs::create_dir_all(state).map_err(SetupError::io("making", state))?;
    let _lock = lock(state)?;
    let mut records = SetupRecords::load(state)?;
    let mut empty = Vec::new();
    for planned in plan.changes.iter().filter(|change| change.is_change()) {
        let _client_lock = planned.target.lock.as_deref().map(ClientLock::take).transpose()?.flatten();
        let change = &current(plan, planned, &records)?;
        if !change.is_change() {
            continue;
        }
        let mut desk = FileUpdate {
            state,
            time,
            records: &mut records,
            applied: &mut applied,
            empty: &mut empty,
            before_step,
        };
        match plan.action {
            SetupAction::Remove(_) if !change.keeps_entries => desk.remove(change)?,
            // What is left of Ringer's is recorded as after a setup.
            SetupAction::Setup(..) | SetupAction::Remove(_) => desk.set_up(change)?,
        }
    }
    // Only now: the files of one client share directories. The longest path is the deepest.
    empty.sort_unstable_by_key(|directory| std::cmp::Reverse(directory.as_os_str().len()));
    for directory in empty {
        // Only an empty one can be deleted this way; what is in use stays.
        drop(fs::remove_dir(directory));
    }
    Ok(applied)
}

/// A change of a file as it is now. One that a client writes itself may be another than when the plan was made; what Ringer
/// does to it stays the same.
fn current<'a>(
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

/// What the work on one file needs.
struct FileUpdate<'a> {
    state: &'a Path,
    time: &'a BackupTime,
    records: &'a mut SetupRecords,
    applied: &'a mut Applied,
    /// Directories that the setup made and that may be empty now.
    empty: &'a mut Vec<PathBuf>,
    before_step: BeforeStep<'a>,
}

impl FileUpdate<'_> {
    fn set_up(&mut self, change: &FileChange) -> Result<(), SetupError> {
        let (path, real) = (change.path(), resolve(change.path())?);
        ask(self.before_step, Step::MakeDirectory, path)?;
        let mut made = make_directory(&real)?;
        // What Ringer wrote itself is no loss; the backup from before the first setup stays.
        let backup = if self.is_as_written(change) { None } else { self.back_up(change)? };

        let old = self.records.get(path).filter(|_| change.untouched).cloned();
        let original = match (old, backup, &change.before) {
            // A second setup over an untouched first one still leads back to what was there before the first.
            (Some(old), _, _) => {
                made = [old.made, made].concat();
                old.original
            }
            (None, Some(path), Some(bytes)) => OriginalFile::Backup { path, fingerprint: fingerprint(bytes) },
            _ => OriginalFile::Absent,
        };
        let left =
            [&change.after, &change.before].into_iter().flatten().map(|bytes| fingerprint(bytes)).collect();
        ask(self.before_step, Step::WriteReceipt, path)?;
        self.records.put(path, SetupRecord { left, original, made });
        self.save_records()?;

        replace(&real, change.before.as_deref(), change.after.as_deref(), self.before_step)?;
        self.applied.written.push(path.to_path_buf());
        self.prune(path)
    }

    fn remove(&mut self, change: &FileChange) -> Result<(), SetupError> {
        let (path, real) = (change.path(), resolve(change.path())?);
        // What Ringer wrote and the person has not changed is no loss.
        if !change.untouched {
            self.back_up(change)?;
        }
        replace(&real, change.before.as_deref(), change.after.as_deref(), self.before_step)?;
        let list = if change.after.is_some() { &mut self.applied.written } else { &mut self.applied.deleted };
        list.push(path.to_path_buf());

        ask(self.before_step, Step::ForgetReceipt, path)?;
        if let Some(record) = self.records.remove(path) {
            self.save_records()?;
            self.empty.extend(record.made);
        }
        self.prune(path)?;
        if let Some(restored) = change.after.as_deref().filter(|_| change.untouched) {
            delete_copies(path, restored);
        }
        Ok(())
    }

    /// Whether a file has exactly the bytes that the last setup wrote.
    fn is_as_written(&self, change: &FileChange) -> bool {
        let written = self.records.get(change.path()).and_then(|record| record.left.first());
        written.is_some_and(|written| {
            change.before.as_deref().is_some_and(|bytes| fingerprint(bytes) == *written)
        })
    }

    /// Copies the old bytes to a backup beside the path that the user knows.
    fn back_up(&mut self, change: &FileChange) -> Result<Option<PathBuf>, SetupError> {
        let Some(bytes) = &change.before else { return Ok(None) };
        ask(self.before_step, Step::WriteBackup, change.path())?;
        for number in 1..=MAX_SAME_SECOND {
            let backup = self.time.backup_of(change.path(), number);
            match write_new(&backup, bytes, Some(change.path())) {
                Ok(()) => self.applied.backups.push(backup.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // The same bytes in the same second: the run before this one was stopped half-way.
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
    fn prune(&mut self, path: &Path) -> Result<(), SetupError> {
        ask(self.before_step, Step::PruneBackups, path)?;
        let old = backups(path).into_iter().skip(MAX_BACKUPS);
        for backup in old.filter(|backup| !self.records.uses_backup(backup)) {
            // One that cannot be deleted is litter, not a failure of the setup.
            drop(fs::remove_file(backup));
        }
        Ok(())
    }
}

/// Deletes the backups that hold the same as a file that was restored.
fn delete_copies(path: &Path, restored: &[u8]) {
    for backup in backups(path) {
        if matches!(read(&backup), Ok(Some(bytes)) if bytes == restored) {
            // One that cannot be deleted is litter, not a failure of the removal.
            drop(fs::remove_file(backup));
        }
    }
}

/// Makes the directory of a file and gives the levels that were missing.
fn make_directory(path: &Path) -> Result<Vec<PathBuf>, SetupError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let missing = directory.ancestors().take_while(|level| !level.as_os_str().is_empty() && !level.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    missing.reverse();
    fs::create_dir_all(directory).map_err(SetupError::io("making", directory))?;
    Ok(missing)
}

/// Holds others off until it is dropped; two setups at once would fight over the record.
fn lock(state: &Path) -> Result<File, SetupError> {
    let path = state.join("setup.lock");
    let file =
        File::options().create(true).append(true).open(&path).map_err(SetupError::io("opening", &path))?;
    file.lock().map_err(SetupError::io("locking", &path))?;
    Ok(file)
}

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
    use super::*;
    use std::fs::File;

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
