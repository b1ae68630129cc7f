//! Reads settings files, and replaces one so that it is, at every moment, the old one or the new one.
//!
//! The new bytes go to a temporary file in the same directory, reach the disk, get the mode and owner of the old file,
//! and take its name in one step. A symbolic link stays a link: its target is replaced. Extended attributes and hard links
//! are not carried over.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::SetupError;

/// The largest file that is read as a settings file; a larger one is refused.
pub const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What was at a path before the setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Before {
    /// We do not know.
    #[default]
    Unknown,
    /// No file.
    Absent,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A whole file, or `None` if there is none. A FIFO in a project is refused, not waited for.
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

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// A step on the file system, named just before it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Make the directory of a file that does not exist yet.
    MakeDirectory,
    /// Copy the old bytes to a dated backup.
    WriteBackup,
    /// Record what is about to be written.
    WriteReceipt,
    /// Create the temporary file.
    CreateTemporary,
    /// Write the new bytes to it.
    WriteTemporary,
    /// Make them reach the disk.
    SyncTemporary,
    /// See whether the file is still the one that was planned for.
    Compare,
    /// Give the temporary file the name, or delete the file.
    Replace,
    /// Make the new name reach the disk.
    SyncDirectory,
    /// Take a removed file out of the record.
    ForgetReceipt,
    /// Delete the backups beyond the newest few.
    PruneBackups,
}

impl Step {
    /// Every step, in the order in which one file meets them.
    pub const ALL: [Self; 11] = [
        Self::MakeDirectory,
        Self::WriteBackup,
        Self::WriteReceipt,
        Self::CreateTemporary,
        Self::WriteTemporary,
        Self::SyncTemporary,
        Self::Compare,
        Self::Replace,
        Self::SyncDirectory,
        Self::ForgetReceipt,
        Self::PruneBackups,
    ];
}

/// Called before each step; an error stops there.
pub(crate) type BeforeStep<'a> = &'a mut dyn FnMut(Step) -> io::Result<()>;

/// Asks for a step on a file.
pub(crate) fn ask(before_step: BeforeStep, step: Step, path: &Path) -> Result<(), SetupError> {
    before_step(step).map_err(SetupError::io("changing", path))
}

/// The file behind any symbolic links, whether it exists or not.
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

/// Makes the file have `after`, if it still has `before`. `path` is no link.
pub(crate) fn replace(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    before_step: BeforeStep,
) -> Result<(), SetupError> {
    let Some(after) = after else {
        ask(before_step, Step::Compare, path)?;
        compare(path, before)?;
        ask(before_step, Step::Replace, path)?;
        fs::remove_file(path).map_err(SetupError::io("deleting", path))?;
        ask(before_step, Step::SyncDirectory, path)?;
        return sync_directory(path);
    };
    let temporary = beside(path, ".", ".ringer-new");
    let staged = stage(path, &temporary, after, before_step).and_then(|()| {
        ask(before_step, Step::Compare, path)?;
        compare(path, before)?;
        ask(before_step, Step::Replace, path)?;
        fs::rename(&temporary, path).map_err(SetupError::io("replacing", path))
    });
    if staged.is_err() {
        // Best effort: the error to report is the first one, and the next run deletes it as well.
        drop(fs::remove_file(&temporary));
    }
    staged?;
    ask(before_step, Step::SyncDirectory, path)?;
    sync_directory(path)
}

/// Writes a file that must not exist yet, with the mode of another one, and makes it reach the disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
    let mut file = create(path, like)?;
    file.write_all(bytes)?;
    keep_owner_and_mode(&file, like)?;
    file.sync_all()
}

/// The path of a neighbour whose name is built from the file's own.
pub(crate) fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    path.with_file_name(name)
}

fn stage(path: &Path, temporary: &Path, bytes: &[u8], before_step: BeforeStep) -> Result<(), SetupError> {
    ask(before_step, Step::CreateTemporary, path)?;
    let failed = |error| SetupError::io("writing", temporary)(error);
    // Only a run that was killed leaves one behind; the caller holds the lock, so no other process is writing it now.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = create(temporary, Some(path)).map_err(failed)?;
    ask(before_step, Step::WriteTemporary, path)?;
    file.write_all(bytes).map_err(failed)?;
    keep_owner_and_mode(&file, Some(path)).map_err(SetupError::io("keeping the owner and mode of", path))?;
    ask(before_step, Step::SyncTemporary, path)?;
    file.sync_all().map_err(failed)
}

/// A new file; private until it has the mode of the one it stands for, which may hold keys.
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
    // After the owner, because changing that clears some bits.
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
}

fn compare(path: &Path, before: Option<&[u8]>) -> Result<(), SetupError> {
    if read(path)?.as_deref() == before { Ok(()) } else { Err(SetupError::Changed(path.to_path_buf())) }
}

fn sync_directory(path: &Path) -> Result<(), SetupError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    ringer_platform::sync_directory(directory).map_err(SetupError::io("writing", directory))
}
