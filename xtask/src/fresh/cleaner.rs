use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::failure::Failure;

/// Waits for the end of its input and removes the folder. It ignores signals from the terminal. Processes that were just
/// killed may still write to the folder, so it retries. It stays on the file system of the folder, because something may
/// be mounted below.
const SCRIPT: &str = "trap '' HUP INT TERM
cat >/dev/null
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf --one-file-system -- \"$1\" && exit
    sleep 1
done
exit 1";

/// Removes a folder when this process ends, even with Ctrl-C or SIGKILL: a shell waits for EOF on a pipe that only this
/// process holds.
pub(super) struct Cleaner {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Cleaner {
    pub(super) fn of(folder: &Path) -> Result<Self, Failure> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(folder);
        // A separate process group, because Ctrl-C goes to the terminal's foreground group.
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut shell = shell.spawn().map_err(|error| Failure::io("sh", &error))?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Removes the folder now, and waits until it is gone.
    fn finish(&mut self) -> io::Result<bool> {
        drop(self.pipe.take());
        Ok(self.shell.wait()?.success())
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        match self.finish() {
            Ok(true) => {}
            Ok(false) => eprintln!("what was made could not be removed"),
            Err(error) => eprintln!("what was made could not be removed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cleaner;
    use crate::background::until;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ringer-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).expect("a folder");
        fs::write(folder.join("below/file"), "").expect("a file");
        folder
    }

    #[test]
    fn the_folder_goes_with_its_owner() {
        let folder = folder("cleaner");
        let cleaner = Cleaner::of(&folder).expect("sh is everywhere");
        assert!(folder.exists());
        drop(cleaner);
        assert!(!folder.exists());
    }

    /// As if this process had been killed: the pipe is closed, and no process waits for the shell.
    #[test]
    fn it_removes_the_folder_without_being_waited_for() {
        let folder = folder("cleaner-alone");
        let mut cleaner = Cleaner::of(&folder).expect("sh is everywhere");
        drop(cleaner.pipe.take());
        assert!(until(Duration::from_secs(20), || !folder.exists()));
    }
}
