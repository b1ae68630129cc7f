//! Replacing files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether a file has to survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The bytes and the name are on the disk when the call returns.
    Synced,
    /// The file can be written again if it is lost.
    Unsynced,
}

/// Replaces a file, or creates it, readable by its owner only. A reader sees the old content or the new one, and of two
/// processes that write at once one wins.
pub fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{}.new", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = directory.join(name);
    // A process that was killed may have left one with this process's number.
    let _ = fs::remove_file(&temporary);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        if durability == Durability::Synced {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)?;
        if durability == Durability::Synced { sync_directory(directory) } else { Ok(()) }
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Syncs a directory: a file that was synced is still lost if its name was not.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{Durability, replace_file};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (text, durability) in
            [("first, and longer", Durability::Synced), ("second", Durability::Unsynced)]
        {
            replace_file(&path, text.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace_file(&taken, b"text", Durability::Unsynced).is_err());
        assert!(replace_file(&directory.path().join("missing/file"), b"text", Durability::Unsynced).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
