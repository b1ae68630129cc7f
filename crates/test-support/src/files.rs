//! Programs, FIFOs and a directory that hangs, for one test.
//!
//! A separate process writes programs. A child that is forked while a file is open for writing keeps it open until `exec`,
//! and a program that is open for writing cannot be run ("Text file busy"). In `cargo test`, some other test is always
//! starting a process.

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

/// Writes an executable shell script. `script` has no `#!` line.
///
/// # Panics
///
/// If the script cannot be written.
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
/// If the copy fails.
#[track_caller]
pub fn copy_program(program: &Path, path: &Path) {
    let copied = Command::new("cp").arg(program).arg(path).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// Creates a FIFO with mode 0600. Uses `mkfifo`, because rustix cannot create FIFOs on macOS.
///
/// # Panics
///
/// If the FIFO cannot be created.
#[track_caller]
pub fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// A FUSE file system whose server never answers, like a network share whose server is gone.
///
/// Every system call on it hangs until it is released or dropped. It is not mounted; its path goes through `/proc/PID/fd`.
#[derive(Debug)]
pub struct HangingDirectory {
    /// The server's end of the file system. When it is closed, every hanging call fails.
    server: Mutex<Option<File>>,
    mount: OwnedFd,
}

impl HangingDirectory {
    /// Creates the file system. It needs Linux, root and `/dev/fuse`; without them, reports the test as skipped and returns
    /// `None`.
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

    /// Returns the root directory of the file system.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.mount.as_raw_fd()).into()
    }

    /// Makes every hanging call and every later call fail.
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
