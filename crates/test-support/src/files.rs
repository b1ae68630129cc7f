//! Programs, FIFOs and a directory that hangs, for one test.
//!
//! Another process writes programs. A child that is forked while a file is open for writing holds it open until it executes
//! its own program, and a program that is open for writing cannot be run ("Text file busy"). In `cargo test` some other
//! test is always starting something.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use crate::skip;

/// Makes a program of a script for the shell, without its first line.
///
/// # Panics
///
/// Where it cannot be written.
#[track_caller]
pub fn make_program(path: &Path, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let Ok(mut shell) = command.spawn() else { panic!("sh does not start") };
    let text = format!("#!/bin/sh\n{script}\n");
    let written = shell.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    assert!(written && shell.wait().is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// Copies a program.
///
/// # Panics
///
/// Where that is not possible.
#[track_caller]
pub fn copy_program(program: &Path, path: &Path) {
    let copied = Command::new("cp").arg(program).arg(path).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// Makes a FIFO that is its owner's alone. rustix makes none on macOS.
///
/// # Panics
///
/// Where that is not possible.
#[track_caller]
pub fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// A file system in user space whose server never answers, as a network share does whose server has gone.
///
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::{copy_program, make_program};

    #[test]
    fn what_is_made_can_be_run() {
        let directory = tempfile::tempdir().unwrap();
        let (made, copied) = (directory.path().join("made"), directory.path().join("copied"));
        make_program(&made, "exit 7");
        copy_program(Path::new("/bin/false"), &copied);
        let codes = [made, copied].map(|path| Command::new(path).status().unwrap().code());
        assert_eq!(codes, [Some(7), Some(1)]);
    }
}
