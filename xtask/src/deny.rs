//! Licences, sources and versions of the dependencies, as deny.toml allows them.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use crate::binary;
use crate::failure::Failure;
use crate::machine::is_ci;
use crate::step::Step;
use crate::step_times::StepTimes;

/// The version that CI installs.
const VERSION: &str = "0.20.2";
/// The oldest version that is accepted. Older ones may fail to parse deny.toml or the output of `cargo metadata`.
const OLDEST: (u32, u32) = (0, 20);

const LOCK_FILES: [LockFile; 2] = [
    LockFile { manifest: "Cargo.toml", unmatched_skips: "--deny" },
    // It has fewer dependencies, so some exceptions do not apply.
    LockFile { manifest: "fuzz/Cargo.toml", unmatched_skips: "--allow" },
];

struct LockFile {
    manifest: &'static str,
    /// The lint level for exceptions whose version is not in the lock file.
    unmatched_skips: &'static str,
}

/// Checks both lock files. The network is only needed for crates that are not downloaded yet: dependencies of other systems.
pub(crate) fn check(times: &mut StepTimes) -> Result<(), Failure> {
    let program = ensure(times)?;
    for LockFile { manifest, unmatched_skips } in LOCK_FILES {
        Step::cargo("fetch", &["fetch", "--quiet", "--locked", "--manifest-path", manifest]).run(times)?;
        Step::new("deny", &program)
            .args(["--offline", "--manifest-path", manifest, "--config", "deny.toml", "check"])
            .args([unmatched_skips, "unmatched-skip", "bans", "licenses", "sources"])
            .run(times)?;
    }
    Ok(())
}

/// Returns the program: the developer's, or in CI one that is built into the target folder. It is built without
/// optimisation, because a check then still takes seconds, and an optimised build takes minutes.
fn ensure(times: &mut StepTimes) -> Result<OsString, Failure> {
    let folder = binary::artifacts()?.join("tools");
    let installed = folder.join("bin/cargo-deny");
    for program in [OsString::from("cargo-deny"), installed.clone().into()] {
        if version(&program).is_some_and(|version| version >= OLDEST) {
            return Ok(program);
        }
    }
    if !is_ci() {
        return Err(Failure::unavailable(format!(
            "cargo-deny {}.{} or newer is not here: it checks licences and versions of dependencies\n\
             install it with: cargo install cargo-deny --locked --version {VERSION}",
            OLDEST.0, OLDEST.1
        )));
    }
    fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder.display().to_string(), &error))?;
    Step::cargo("install", &["install", "cargo-deny", "--version", VERSION, "--locked", "--quiet"])
        .args(["--debug", "--no-default-features", "--root"])
        .args([&folder])
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .run(times)?;
    Ok(installed.into())
}

/// Returns the major and minor version of a program, if it is installed.
fn version(program: &OsString) -> Option<(u32, u32)> {
    let output = Command::new(program).arg("--version").output().ok()?;
    numbers(&String::from_utf8_lossy(&output.stdout))
}

/// Parses `cargo-deny 0.20.2` as (0, 20).
fn numbers(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().rsplit(' ').next()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{OLDEST, numbers};

    #[test]
    fn an_old_version_is_not_used() {
        let is_used = |said: &str| numbers(said).is_some_and(|version| version >= OLDEST);
        assert!(is_used("cargo-deny 0.20.2\n") && is_used("cargo-deny 1.0.0"));
        assert!(!is_used("cargo-deny 0.14.2\n") && !is_used("") && !is_used("cargo-deny"));
    }
}
