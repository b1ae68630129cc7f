//! Runs the README's two commands in a newly installed, bare Debian root that has only Rust.
//!
//! Developer machines and long-lived CI machines have every program that was ever needed. Only a bare machine, or a
//! newcomer, notices that a test starts a program which `cargo xtask test` does not install.

mod cleaner;
mod folders;
mod host;
mod readme;
mod root;

use std::fs::{self, File};
use std::process::Command;

use crate::binary;
use crate::failure::Failure;
use crate::flags::unknown;
use crate::parts::{self, Missing, Part};
use crate::step_times::StepTimes;
use root::Root;

const MAKER: &[Part] =
    &[Part::new("mmdebstrap", "mmdebstrap", "so a bare Debian is made to try the README's commands in")];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (mut keep, mut missing) = (false, Missing::Install);
    for argument in arguments {
        match argument.as_str() {
            "--keep" => keep = true,
            "--no-install" => missing = Missing::Report,
            other => return Err(unknown(other, "--keep, --no-install")),
        }
    }
    possible().map_err(|why| Failure::unavailable(format!("no bare machine can be made here: {why}")))?;
    StepTimes::around(|times| all(keep, missing, times))
}

/// Checks that a bare root can be created and entered on this machine; an error is the reason why not.
pub(crate) fn possible() -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("it needs Linux".to_owned());
    }
    if !parts::is_root() {
        return Err("it needs root, to mount file systems and to make a Debian".to_owned());
    }
    let arguments = ["--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"];
    let tried = Command::new("unshare").args(arguments).output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(format!("it needs the right to mount in a namespace of its own ({})", complaint.trim()))
        }
        Err(error) => Err(format!("unshare: {error}")),
    }
}

/// Returns true if there are uncommitted changes, which a clone would not have.
pub(crate) fn is_dirty() -> Result<bool, Failure> {
    let output = Command::new("git").args(["status", "--porcelain"]).output();
    let output = output.map_err(|error| Failure::io("git status", &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::unavailable(format!("git status: {}", reason.trim())));
    }
    Ok(!output.stdout.is_empty())
}

/// Creates the root and runs the README's commands in it verbatim.
fn all(keep: bool, missing: Missing, times: &mut StepTimes) -> Result<(), Failure> {
    let bare = BareMachine::make(keep, missing, times)?;
    let outcome = bare.run(times);
    if keep {
        eprintln!(
            "the root stays in {}; enter it with: {}",
            bare.root.path().display(),
            bare.root.entrance()
        );
    }
    outcome
}

/// A bare Debian, and the commands to run in it.
pub(crate) struct BareMachine {
    root: Root,
    commands: [String; 2],
}

impl BareMachine {
    /// Creates the root. It is removed on drop unless `keep` is set.
    pub(crate) fn make(keep: bool, missing: Missing, times: &mut StepTimes) -> Result<Self, Failure> {
        let commands = readme::commands()?;
        if is_dirty()? {
            eprintln!("the work tree has changes: what is not committed is not tried");
        }
        parts::ensure_these(MAKER, missing, times)?;
        let folder = binary::artifacts()?.join("fresh");
        Ok(Self { root: Root::make(&folder, keep, times)?, commands })
    }

    pub(crate) fn run(&self, times: &mut StepTimes) -> Result<(), Failure> {
        try_commands(&self.root, &self.commands, times)
    }
}

fn try_commands(root: &Root, commands: &[String; 2], times: &mut StepTimes) -> Result<(), Failure> {
    let [opens, tests] = commands;
    // Without a terminal, `ringer` prints as text what it would show.
    let said = root.beside("said");
    let file = File::create(&said).map_err(|error| Failure::io(&said.display().to_string(), &error))?;
    let outcome = root.step("fresh run", opens).without_terminal(file).run(times);
    let said = fs::read_to_string(&said).map_err(|error| Failure::io(&said.display().to_string(), &error))?;
    print!("{said}");
    outcome?;
    if said.trim().is_empty() {
        return Err(Failure::complaints(format!("`{opens}` said nothing without a terminal")));
    }
    root.step("fresh test", tests).run(times)
}
