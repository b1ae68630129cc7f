//! Ends everything that was started, however the benchmark ends.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::processes;

/// Names the directory to the process that cleans up.
const GUARDED: &str = "RINGER_BENCH_GUARDED";

/// A directory, and a process that waits until this one has ended: then it ends all processes that were started there, and
/// removes the directory. The servers of panes outlive whatever starts them, so a benchmark that is killed would leave them.
pub(crate) struct Cleanup {
    directory: PathBuf,
    guard: Child,
}

impl Cleanup {
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("panes").tempdir().expect("a directory").keep();
        let guard = Command::new(std::env::current_exe().expect("this program"))
            .env(GUARDED, &directory)
            .stdin(Stdio::piped())
            // Ctrl-C is for the benchmark alone.
            .process_group(0)
            .spawn()
            .expect("a process that cleans up");
        Self { directory, guard }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Whether this process is the one that cleans up.
pub(crate) fn is_guard() -> bool {
    std::env::var_os(GUARDED).is_some()
}

/// Waits for the end of the benchmark.
pub(crate) fn guard() {
    let Some(directory) = std::env::var_os(GUARDED).map(PathBuf::from) else { return };
    // An error is the end, too.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    processes::end_all(&directory);
    let _ = std::fs::remove_dir_all(directory);
}
