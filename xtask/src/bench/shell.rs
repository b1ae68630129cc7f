//! The shell design that Ringer replaces: `benches/baseline/notify.sh` and `listen.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::baseline;
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;

/// The scripts, with a folder for their queue and FIFO.
pub(super) struct Shell {
    folder: PathBuf,
    notify: PathBuf,
    listen: PathBuf,
}

impl Shell {
    pub(super) fn new(environment: &TestEnvironment, name: &str) -> Result<Self, Failure> {
        let folder = environment.path(name);
        fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(Self { folder, notify: baseline::script("notify.sh")?, listen: baseline::script("listen.sh")? })
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    pub(super) fn notify(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(&self.notify).arg(&self.folder).args(["worker-1", "status", text]);
        command
    }

    pub(super) fn listen(&self) -> Command {
        let mut command = Command::new("bash");
        // Timeout in seconds: longer than every wait here, and no process stays behind forever.
        command.arg(&self.listen).arg(&self.folder).arg("20");
        command
    }

    /// Creates what a killed listener leaves behind: a FIFO without a reader.
    pub(super) fn abandon(&self) -> Result<(), Failure> {
        make_fifo(&self.folder.join("signal"))
    }
}

/// Runs `mkfifo`, because std cannot create FIFOs.
pub(super) fn make_fifo(path: &Path) -> Result<(), Failure> {
    let status = Command::new("mkfifo").arg(path).status().map_err(|error| Failure::io("mkfifo", &error))?;
    if status.success() { Ok(()) } else { Err(Failure::unavailable(format!("mkfifo: {status}"))) }
}
