//! A directory that hangs: a file system in user space whose server never answers, as a network share does whose server
//! has gone.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use crate::skip;

/// Every call that looks into it hangs until this is dropped. It is mounted nowhere: its path leads through this process.
#[derive(Debug)]
pub struct HangingDirectory {
    /// The other end of the file system. Closed, every call that hangs there fails.
    server: Mutex<Option<File>>,
    mount: OwnedFd,
}

impl HangingDirectory {
    /// `None` where it cannot be made: it needs Linux, root and `/dev/fuse`. The test is reported as skipped and has to return.
    #[must_use = "a test that is skipped has to return"]
    #[track_caller]
    pub fn new() -> Option<Self> {
        match Self::mount() {
            Ok(directory) => Some(directory),
            Err(error) => {
                skip(&format!("it needs a file system that hangs, with Linux, root and /dev/fuse ({error})"));
                None
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn mount() -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    #[cfg(target_os = "linux")]
    fn mount() -> std::io::Result<Self> {
        let server = File::options().read(true).write(true).open("/dev/fuse")?;
        let system = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let number = server.as_raw_fd().to_string();
        for (key, value) in
            [("fd", number.as_str()), ("rootmode", "40000"), ("user_id", "0"), ("group_id", "0")]
        {
            fsconfig_set_string(&system, key, value)?;
        }
        fsconfig_create(&system)?;
        let mount = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        Ok(Self { server: Mutex::new(Some(server)), mount })
    }

    /// A directory in it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.mount.as_raw_fd()).into()
    }

    /// Lets go of every call that hangs, and of those that come later.
    pub fn release(&self) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
