//! Builds `ringer` with cargo and finds the result.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::parts;
use crate::step::{self, Step};
use crate::step_times::StepTimes;

/// The build profile of `ringer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Profile {
    Dev,
    /// As `cargo test` has just built it. `Dev` selects other features of the dependencies, so cargo would rebuild most of
    /// them.
    Tested,
    Release,
    /// As it is shipped.
    Dist,
}

impl Profile {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Dev, Self::Release, Self::Dist].into_iter().find(|profile| profile.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Tested => "tested",
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }

    /// Cargo's folder for it.
    fn folder(self) -> &'static str {
        match self {
            Self::Dev | Self::Tested => "debug",
            Self::Release | Self::Dist => self.name(),
        }
    }
}

/// Builds `ringer` and returns its path.
pub(crate) fn ringer(profile: Profile, times: &mut StepTimes) -> Result<PathBuf, Failure> {
    let program = format!("ringer{EXE_SUFFIX}");
    if profile == Profile::Tested {
        return Ok(artifacts()?.join(profile.folder()).join(program));
    }
    let mut build = Step::cargo("build", &["build", "--profile", profile.name(), "-p", "ringer"]);
    // The shipped program has all features.
    if profile == Profile::Dist {
        build = build.args(step::FEATURES);
    }
    // With an explicit target, the flags do not apply to build scripts and procedural macros, which they would break.
    if let Some(target) = static_target().filter(|_| profile == Profile::Dist) {
        build.args(["--target", &target]).env("RUSTFLAGS", STATIC).run(times)?;
        return Ok(artifacts()?.join(target).join(profile.folder()).join(program));
    }
    build.run(times)?;
    Ok(artifacts()?.join(profile.folder()).join(program))
}

/// Hooks start the program all day. Static linking without relocations saves a third of a millisecond per start. Cargo
/// profiles have no such setting, so it is here.
const STATIC: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// Returns the target of the shipped program if the C library can be linked statically: musl if it is installed, else glibc.
///
/// At start, glibc executes some fifty CPUID instructions to query the caches. In a virtual machine each traps to the host,
/// which takes a fifth of a millisecond in total; musl does not query them.
fn static_target() -> Option<String> {
    let host = host_in(&rustc(&["-vV"])?).filter(|host| host.ends_with("-linux-gnu"))?;
    let musl = host.replace("-gnu", "-musl");
    let libraries = rustc(&["--print", "target-libdir", "--target", &musl])?;
    if Path::new(libraries.trim()).is_dir() && parts::is_here("musl-gcc") {
        return Some(musl);
    }
    eprintln!(
        "ringer: linked with glibc, and starts a little later; for musl: rustup target add {musl}, and install musl-tools"
    );
    Some(host)
}

/// Returns the output of rustc.
fn rustc(arguments: &[&str]) -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn host_in(version: &str) -> Option<String> {
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// Returns cargo's target folder: the parent of the profile folder that contains this program. This is right however the
/// target folder was set (environment, configuration, `--target`).
pub(crate) fn artifacts() -> Result<PathBuf, Failure> {
    let ourselves = env::current_exe().map_err(|error| Failure::io("the path of xtask", &error))?;
    let folder = ourselves.parent().and_then(Path::parent);
    folder
        .map(Path::to_path_buf)
        .ok_or_else(|| Failure::unavailable(format!("{} is not inside a target folder", ourselves.display())))
}

#[cfg(test)]
mod tests {
    use super::{Profile, host_in};

    #[test]
    fn the_host_is_read_off_the_compiler() {
        let version = "rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(host_in(version).as_deref(), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(host_in(""), None);
    }

    #[test]
    fn profiles_go_by_cargos_names() {
        fn check(name: &str, folder: Option<&str>) {
            assert_eq!(Profile::named(name).map(Profile::folder), folder, "{name}");
        }
        check("dev", Some("debug"));
        check("release", Some("release"));
        check("dist", Some("dist"));
        check("debug", None);
    }
}
