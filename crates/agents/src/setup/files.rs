//! Reads settings files, and replaces them so that a file has, at every moment, either the old or the new content.
//!
//! The new bytes go to a temporary file in the same directory, are synced, get the mode and owner of the old file, and are
//! renamed over it. A symbolic link stays a link: its target is replaced. Extended attributes and hard links are not preserved.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::SetupError;

/// Maximum size of a settings file; a larger one is rejected.
pub const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The content of a path before setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OriginalContent {
    /// Unknown: there is no record, or its backup is gone.
    #[default]
    Unknown,
    /// No file.
    Absent,
    /// A file with these bytes.
    Bytes(Vec<u8>),
}

/// Reads a whole file; `None` if it does not exist. A FIFO in a project is rejected, not waited for.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, SetupError> {
    let mut bytes = Vec::new();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from).map_err(io::Error::from);
    let count = match opened {
        Ok(file) if !file.metadata().is_ok_and(|metadata| metadata.is_file()) => {
            return Err(SetupError::io("opening", path)(io::Error::other("it is not a file")));
        }
        Ok(file) => {
            file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(SetupError::io("reading", path))?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SetupError::io("opening", path)(error)),
    };
    if count as u64 > MAX_FILE {
        return Err(SetupError::TooLarge { path: path.to_path_buf(), limit: MAX_FILE });
    }
    Ok(Some(bytes))
}

/// The limit of the Linux kernel.
const MAX_LINKS: usize = 40;

/// A file operation, announced just before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Create the directory of a new file.
    MakeDirectory,
    /// Copy the old bytes to a dated backup.
    WriteBackup,
    /// Write the record of the change.
    WriteRecord,
    /// Create the temporary file.
    CreateTemporary,
    /// Write the new bytes to the temporary file.
    WriteTemporary,
    /// Sync the temporary file.
    SyncTemporary,
    /// Check that the file has not changed since the plan.
    Compare,
    /// Rename the temporary file, or delete the file.
    Replace,
    /// Sync the directory.
    SyncDirectory,
    /// Remove the file from the record.
    RemoveRecord,
    /// Delete the backups beyond the newest few.
    PruneBackups,
}

impl Step {
    /// All steps, in the order in which a file goes through them.
    pub const ALL: [Self; 11] = [
        Self::MakeDirectory,
        Self::WriteBackup,
        Self::WriteRecord,
        Self::CreateTemporary,
        Self::WriteTemporary,
        Self::SyncTemporary,
        Self::Compare,
        Self::Replace,
        Self::SyncDirectory,
        Self::RemoveRecord,
        Self::PruneBackups,
    ];
}

/// Called before each step; an error stops there.
pub(crate) type BeforeStep<'a> = &'a mut dyn FnMut(Step) -> io::Result<()>;

/// Announces a step on a file.
pub(crate) fn announce(before_step: BeforeStep, step: Step, path: &Path) -> Result<(), SetupError> {
    before_step(step).map_err(SetupError::io("changing", path))
}

/// Resolves symbolic links, even if the target does not exist.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, SetupError> {
    let mut at = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&at) {
            Ok(link) => at = at.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(at),
        }
    }
    Err(SetupError::io("following the links of", path)(io::Error::from_raw_os_error(
        rustix::io::Errno::LOOP.raw_os_error(),
    )))
}

/// Replaces the content `before` of a file by `after`, and fails if the file has changed. `path` is not a link.
pub(crate) fn replace(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    before_step: BeforeStep,
) -> Result<(), SetupError> {
    let Some(after) = after else {
        announce(before_step, Step::Compare, path)?;
        compare(path, before)?;
        announce(before_step, Step::Replace, path)?;
        fs::remove_file(path).map_err(SetupError::io("deleting", path))?;
        announce(before_step, Step::SyncDirectory, path)?;
        return sync_directory(path);
    };
    let temporary = sibling_path(path, ".", ".ringer-new");
    let staged = stage(path, &temporary, after, before_step).and_then(|()| {
        announce(before_step, Step::Compare, path)?;
        compare(path, before)?;
        announce(before_step, Step::Replace, path)?;
        fs::rename(&temporary, path).map_err(SetupError::io("replacing", path))
    });
    if staged.is_err() {
        // Best effort: the first error is reported, and the next run also deletes the file.
        drop(fs::remove_file(&temporary));
    }
    staged?;
    announce(before_step, Step::SyncDirectory, path)?;
    sync_directory(path)
}

/// Writes a new file with the mode of another one, and syncs it.
pub(crate) fn write_new(path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
    let mut file = create(path, like)?;
    file.write_all(bytes)?;
    keep_owner_and_mode(&file, like)?;
    file.sync_all()
}

/// The path of a sibling whose name is built from the file's own.
pub(crate) fn sibling_path(path: &Path, before: &str, after: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    path.with_file_name(name)
}

fn stage(path: &Path, temporary: &Path, bytes: &[u8], before_step: BeforeStep) -> Result<(), SetupError> {
    announce(before_step, Step::CreateTemporary, path)?;
    let failed = |error| SetupError::io("writing", temporary)(error);
    // Only a killed run leaves a temporary file. The caller holds the lock, so no other process is writing it now.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = create(temporary, Some(path)).map_err(failed)?;
    announce(before_step, Step::WriteTemporary, path)?;
    file.write_all(bytes).map_err(failed)?;
    keep_owner_and_mode(&file, Some(path)).map_err(SetupError::io("keeping the owner and mode of", path))?;
    announce(before_step, Step::SyncTemporary, path)?;
    file.sync_all().map_err(failed)
}

/// Creates a file, private until it gets the mode of the file it replaces, which may contain keys.
fn create(path: &Path, like: Option<&Path>) -> io::Result<File> {
    let private = like.is_some_and(Path::exists);
    OpenOptions::new().write(true).create_new(true).mode(if private { 0o600 } else { 0o666 }).open(path)
}

fn keep_owner_and_mode(file: &File, like: Option<&Path>) -> io::Result<()> {
    let Some(Ok(old)) = like.map(fs::metadata) else { return Ok(()) };
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    // After `fchown`, which clears some mode bits.
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
}

fn compare(path: &Path, before: Option<&[u8]>) -> Result<(), SetupError> {
    if read(path)?.as_deref() == before {
        Ok(())
    } else {
        Err(SetupError::ChangedMeanwhile(path.to_path_buf()))
    }
}

fn sync_directory(path: &Path) -> Result<(), SetupError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    ringer_platform::sync_directory(directory).map_err(SetupError::io("writing", directory))
}
