use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cleaner::Cleaner;
use super::folders::{absolute, cargo_home, make_folder, write};
use super::host::{self, quoted};
use crate::failure::Failure;
use crate::step::{self, Step};
use crate::step_times::StepTimes;

/// Debian 12: what most machines with a Debian run.
const SUITE: &str = "bookworm";

/// What building Rust programs from a repository needs, and no more.
const PACKAGES: &str = "ca-certificates,git,gcc,libc6-dev,pkg-config";

/// How the root is entered. The lines above it say where everything is.
const ENTER: &str = include_str!("enter.sh");

/// A bare Debian with a clone of the repository, gone with its owner unless it is to be kept.
pub(super) struct Root {
    path: PathBuf,
    enter: PathBuf,
    _cleaner: Option<Cleaner>,
}

impl Root {
    /// Makes one below a folder. What cargo builds in it stays in the folder, so that the next one need not build every
    /// dependency again.
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

    /// A file beside the root that goes with it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// What to type to get in.
    pub(super) fn entrance(&self) -> String {
        format!("sh {}", self.enter.display())
    }

    /// A command, typed in the clone.
    pub(super) fn step(&self, name: &'static str, command: &str) -> Step {
        // What is inside ends when we do, also when we are killed.
        Step::new(name, "setpriv").args(["--pdeathsig", "KILL", "sh"]).args([&self.enter]).args([command])
    }

    /// In namespaces of its own as well, so that nothing stays mounted when it is interrupted.
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

    /// What is committed, as one who has just cloned it has it.
    fn clone_repository(&self, times: &mut StepTimes) -> Result<(), Failure> {
        let here = absolute(Path::new("."))?;
        Step::new("clone", "git")
            .args(["clone", "--quiet", "--no-local", "--depth", "1"])
            .args([format!("file://{}", here.display())])
            .args([self.path.join("srv/ringer")])
            .run(times)
    }

    /// The places at which folders of this machine are mounted, and the script that does it.
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
            // Root, every package and every right are here, so that every test can run.
            quoted(&format!("RINGER_TESTS=all{}", host::variables())),
        );
        write(&self.enter, &script)
    }
}

/// The folder of the toolchain that runs us.
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
