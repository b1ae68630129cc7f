use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Settings that let commands without a terminal do what only the person may do.
pub(crate) const SCRIPTS_DECIDE: &str = "[answers]\nscripts = true\n";

/// A temporary folder with a home for the journal and a repository. It is removed on drop.
pub(crate) struct TestEnvironment {
    root: PathBuf,
    ringer: PathBuf,
}

impl TestEnvironment {
    /// Creates the folder in the system's temporary folder, so that TMPDIR selects the file system.
    pub(crate) fn new(purpose: &str, ringer: &Path) -> Result<Self, Failure> {
        Self::in_folder(&env::temp_dir(), purpose, ringer)
    }

    /// Creates the folder in memory if the system supports it, for runs that sync often and do not depend on a disk.
    pub(crate) fn in_memory(purpose: &str, ringer: &Path) -> Result<Self, Failure> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
        Self::in_folder(&folder, purpose, ringer)
    }

    fn in_folder(folder: &Path, purpose: &str, ringer: &Path) -> Result<Self, Failure> {
        let root = folder.join(format!("ringer-{purpose}-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&root).map_err(|error| failed(&root, &error))?;
        let environment = Self { root, ringer: ringer.to_owned() };
        make_repository(&environment.repository())?;
        // Commands here run without a terminal.
        let config = environment.config();
        fs::write(&config, SCRIPTS_DECIDE).map_err(|error| failed(&config, &error))?;
        Ok(environment)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The home that [`TestEnvironment::ringer`] uses.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    /// The path of the settings. Whoever replaces them must start with [`SCRIPTS_DECIDE`].
    pub(crate) fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Returns a path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn ringer<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.ringer_at(&self.home(), arguments)
    }

    /// Returns a `ringer` command with another home, and without variables that identify the caller.
    pub(crate) fn ringer_at<'a>(&self, home: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.ringer);
        command.args(arguments).stdin(Stdio::null());
        self.configure(command, home)
    }

    /// Returns a `ringer hook` command with its own parent process: the caller of a hook counts as an agent until it exits,
    /// and an agent may not do what the harness does.
    pub(crate) fn hook<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" hook \"$@\"; exit $?"]).arg(&self.ringer).args(arguments);
        shell.stdin(Stdio::null());
        self.configure(shell, &self.home())
    }

    /// Returns a command for another program that runs `ringer`, in the same environment.
    pub(crate) fn around<'a>(
        &self,
        mut command: Command,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Command {
        command.arg(&self.ringer).args(arguments).stdin(Stdio::null());
        self.configure(command, &self.home())
    }

    fn configure(&self, mut command: Command, home: &Path) -> Command {
        command
            .current_dir(self.repository())
            .env("RINGER_HOME", home)
            .env("RINGER_CONFIG", self.config())
            .env("RINGER_HUB", "off")
            // Cargo sets it for xtask; the loader would search cargo's folders first for every library.
            .env_remove("LD_LIBRARY_PATH")
            // Otherwise the spool would be there, outside of the folder.
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("RINGER_AGENT")
            .env_remove("RINGER_SURFACE");
        command
    }

    /// Holds the journal's write lock until the file is dropped, like a stopped process.
    pub(crate) fn hold_write_lock(&self) -> Result<File, Failure> {
        let path = self.home().join("write.lock");
        let lock =
            File::options().append(true).create(true).open(&path).map_err(|error| failed(&path, &error))?;
        lock.lock().map_err(|error| failed(&path, &error))?;
        Ok(lock)
    }

    /// Opens the file that collects the standard error of programs.
    pub(crate) fn complaints(&self) -> Result<File, Failure> {
        let path = self.path("complaints");
        File::options().create(true).append(true).open(&path).map_err(|error| failed(&path, &error))
    }

    /// Returns the first lines of the collected errors.
    pub(crate) fn first_errors(&self) -> String {
        const MOST: usize = 10;
        let text = fs::read(self.path("complaints")).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().take(MOST).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("{} is left behind: {error}", self.root.display());
        }
    }
}

fn make_repository(path: &Path) -> Result<(), Failure> {
    // Without a template, which would copy twenty sample hooks into every repository.
    let status = Command::new("git")
        .args(["init", "--quiet", "--template="])
        .arg(path)
        .status()
        .map_err(|error| Failure::io("git init", &error))?;
    if status.success() { Ok(()) } else { Err(Failure::unavailable(format!("git init: {status}"))) }
}

/// Copies a folder recursively, without pipes and sockets, which belong to processes.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    let copy = || -> std::io::Result<()> {
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                copy_folder(&entry.path(), &target)
                    .map_err(|failure| std::io::Error::other(failure.to_string()))?;
            } else if entry.file_type()?.is_file() {
                fs::copy(entry.path(), target)?;
            }
        }
        Ok(())
    };
    copy().map_err(|error| failed(from, &error))
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(&path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::{TestEnvironment, copy_folder};
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_scene_leaves_nothing() {
        let environment =
            TestEnvironment::new("scene-test", Path::new("true")).expect("the temporary folder is writable");
        let root = environment.root().to_owned();
        assert!(environment.repository().join(".git/HEAD").is_file());
        fs::create_dir_all(environment.home().join("bells")).expect("it is ours");
        fs::write(environment.home().join("bells/one"), "1").expect("it is ours");
        copy_folder(&environment.home(), &environment.path("copy")).expect("there is room");
        assert_eq!(fs::read_to_string(environment.path("copy/bells/one")).ok().as_deref(), Some("1"));
        assert!(environment.ringer(["--version"]).status().is_ok_and(|status| status.success()));
        drop(environment);
        assert!(!root.exists());
    }
}
