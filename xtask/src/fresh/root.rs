use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cleaner::Cleaner;
use super::folders::{absolute, cargo_home, make_folder, write};
use super::host::{self, quoted};
use crate::failure::Failure;
use crate::step::{self, Step};
use crate::step_times::StepTimes;

/// Debian 12, the most common release.
const SUITE: &str = "bookworm";

/// The minimum for building Rust programs from a repository.
const PACKAGES: &str = "ca-certificates,git,gcc,libc6-dev,pkg-config";

/// The script that enters the root. Variables with the paths are written above it.
const ENTER: &str = include_str!("enter.sh");

/// A bare Debian with a clone of the repository. It is removed on drop unless it should be kept.
pub(super) struct Root {
    path: PathBuf,
    enter: PathBuf,
    _cleaner: Option<Cleaner>,
}

impl Root {
    /// Creates a root below a folder. Cargo's target folder stays there, so that the next root reuses the built dependencies.
    pub(super) fn make(folder: &Path, keep: bool, times: &mut StepTimes) -> Result<Self, Failure> {
        let folder = absolute(folder)?;
        let own = folder.join(format!("root-{}", std::process::id()));
        make_folder(&own)?;
        let cleaner = if keep { None } else { Some(Cleaner::of(&own)?) };
        let root = Self { path: own.join("debian"), enter: own.join("enter"), _cleaner: cleaner };
        root.install(times)?;
        host::settle_in(&root.path)?;
        root.clone_repository(times)?;
        root.prepare(&folder.join("target"))?;
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file beside the root, which is removed with it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// Returns the command that enters the root.
    pub(super) fn entrance(&self) -> String {
        format!("sh {}", self.enter.display())
    }

    /// Returns a step that runs a command in the clone.
    pub(super) fn step(&self, name: &'static str, command: &str) -> Step {
        // Processes in the root end with this process, even if it is killed.
        Step::new(name, "setpriv").args(["--pdeathsig", "KILL", "sh"]).args([&self.enter]).args([command])
    }

    /// Installs Debian in separate namespaces, so that an interrupted run leaves no mounts behind.
    fn install(&self, times: &mut StepTimes) -> Result<(), Failure> {
        Step::new("fresh root", "setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .args(["mmdebstrap", "--quiet", "--variant=minbase"])
            .args([format!("--include={PACKAGES}"), SUITE.to_owned()])
            .args([&self.path])
            .args(host::package_sources(SUITE))
            .run(times)
            .map_err(|failure| Failure::unavailable(format!("no bare Debian could be made: {failure}")))
    }

    /// Clones the committed state of the repository.
    fn clone_repository(&self, times: &mut StepTimes) -> Result<(), Failure> {
        let here = absolute(Path::new("."))?;
        Step::new("clone", "git")
            .args(["clone", "--quiet", "--no-local", "--depth", "1"])
            .args([format!("file://{}", here.display())])
            .args([self.path.join("srv/ringer")])
            .run(times)
    }

    /// Creates the mount points for folders of this machine, and writes the script that mounts them.
    fn prepare(&self, target: &Path) -> Result<(), Failure> {
        let cargo_home = absolute(&cargo_home()?)?;
        let toolchain = toolchain()?;
        for folder in [target, &cargo_home.join("registry")] {
            make_folder(folder)?;
        }
        for folder in ["opt/rust", "root/.cargo/registry", "srv/ringer/target"] {
            make_folder(&self.path.join(folder))?;
        }
        for file in [cargo_home.join(".package-cache"), self.path.join("root/.cargo/.package-cache")] {
            let opened = fs::OpenOptions::new().create(true).append(true).open(&file);
            opened.map_err(|error| Failure::io(&file.display().to_string(), &error))?;
        }
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let script = format!(
            "root={}\ntoolchain={}\ncargo_home={}\ntarget={}\nvariables={}\n{ENTER}",
            path(&self.path),
            path(&toolchain),
            path(&cargo_home),
            path(target),
            // The root has all packages and privileges, so no test may be skipped.
            quoted(&format!("RINGER_TESTS=all{}", host::variables())),
        );
        write(&self.enter, &script)
    }
}

/// Returns the folder of the current toolchain.
fn toolchain() -> Result<PathBuf, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let output = output.map_err(|error| Failure::io("rustc", &error))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if folder.join("bin/cargo").is_file() {
        Ok(folder)
    } else {
        let cargo = step::cargo();
        Err(Failure::unavailable(format!(
            "the toolchain in {} has no cargo of its own to be mounted, only {}",
            folder.display(),
            cargo.display()
        )))
    }
}
