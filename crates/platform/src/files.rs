//! Files: atomic replacement, detection of changes, shared file systems, and the limit of open files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The durability of a file across a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The content and the directory entry are on the disk when the call returns.
    Synced,
    /// The file is not synced. For files that can be written again if they are lost.
    Unsynced,
}

/// Replaces or creates a file, with mode 0600. A reader sees either the old content or the new one. If two processes write at
/// once, one of them wins.
pub fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{}.new", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let temporary = directory.join(name);
    // A process with the same PID may have been killed and have left its file.
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

/// Syncs a directory. A synced file is still lost if its directory entry is not synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Modification time and length of a file, to detect that it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    modified: SystemTime,
    length: u64,
}

/// Returns the stamp of a file. `None` if it does not exist.
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some(FileStamp { modified: metadata.modified().ok()?, length: metadata.len() })
}

/// The kernel's magic numbers of network file systems, and of FUSE, behind which there may be one: NFS, SMB, FUSE, 9P, AFS, Coda,
/// Ceph, Lustre, GPFS, `BeeGFS`, `OrangeFS`, `PanFS`, OCFS2, GFS2, shared folders of a virtual machine.
#[cfg(target_os = "linux")]
const SHARED: [u32; 20] = [
    0x1983_0326,
    0x6b41_4653,
    0x7461_636f,
    0x0116_1970,
    0xaad7_aaea,
    0x2003_0528,
    0x7375_7245,
    0xbacb_acbc,
    0x7c7c_6673,
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x4750_4653,
    0x786f_4256,
];

/// Returns true if a file may be on a file system that is shared with other machines. For a file that does not exist, its nearest
/// existing directory decides.
#[cfg(target_os = "linux")]
pub fn is_on_shared_file_system(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| rustix::fs::statfs(path).ok());
    // The type of the field depends on the architecture. All of these numbers fit into 32 bits.
    let number = found.and_then(|found| u32::try_from(i128::from(found.f_type) & 0xffff_ffff).ok());
    number.is_some_and(|number| SHARED.contains(&number))
}

/// Returns false: only Linux is supported.
#[cfg(not(target_os = "linux"))]
pub fn is_on_shared_file_system(_: &Path) -> bool {
    false
}

/// The wanted limit, and the fallback: macOS refuses more than `OPEN_MAX`, 10,240.
const WANTED: [u64; 2] = [65_536, 10_240];

/// The limit with which this process was started.
static FIRST: OnceLock<u64> = OnceLock::new();

/// Raises the limit of open files of this process to its hard limit, and to at most 65,536. A person's shell often has a limit of
/// 1,024 or 256, and a process that serves many others needs a file for each.
pub fn raise_open_files() {
    let Rlimit { current: Some(current), maximum } = getrlimit(Resource::Nofile) else { return };
    let _ = FIRST.set(current);
    for wanted in WANTED.map(|wanted| maximum.map_or(wanted, |most| most.min(wanted))) {
        if wanted > current && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
        {
            return;
        }
    }
}

/// Runs `start`, which starts a program, with the limit that this process had before [`raise_open_files`]: some programs are slow
/// or fail with a high limit. The limit is at least `needed`, so that this process can still open files up to that number.
pub fn with_first_open_files<T>(needed: u64, start: impl FnOnce() -> T) -> T {
    let raised = getrlimit(Resource::Nofile);
    let first = FIRST.get().map(|first| (*first).max(needed));
    let first = first.filter(|first| raised.current.is_some_and(|raised| *first < raised));
    if let Some(first) = first {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(first), maximum: raised.maximum });
    }
    let started = start();
    if first.is_some() {
        let _ = setrlimit(Resource::Nofile, raised);
    }
    started
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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

    #[test]
    fn what_only_this_machine_has_is_not_shared() {
        assert!(!is_on_shared_file_system(Path::new("/proc/self/nothing/here")));
        assert!(!is_on_shared_file_system(&std::env::temp_dir().join("not there yet")));
    }

    fn current() -> u64 {
        getrlimit(Resource::Nofile).current.unwrap()
    }

    #[test]
    fn the_limit_is_raised_and_not_for_programs() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum }).unwrap();
        assert_eq!(with_first_open_files(0, current), 100, "it was not raised");
        raise_open_files();
        let raised = current();
        assert!(raised > 100 && raised <= 65_536);
        assert_eq!(with_first_open_files(0, current), 100);
        assert_eq!(with_first_open_files(200, current), 200, "there would be no room");
        assert_eq!(current(), raised);
    }
}
