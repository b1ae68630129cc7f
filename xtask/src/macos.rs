//! Checks the macOS code on other systems.
//!
//! This only type-checks; nothing is linked or run. The C and Objective-C code of dependencies would need Apple's SDK, so a
//! stand-in compiler writes empty object files. They are never read, because nothing is linked.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary;
use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

const TARGET: &str = "aarch64-apple-darwin";

/// A compiler that writes an empty output file.
const COMPILER: &str = "#!/bin/sh
while [ $# -gt 0 ]; do
  if [ \"$1\" = -o ]; then : > \"$2\"; fi
  shift
done
";

/// An archiver that writes an empty archive.
const ARCHIVER: &str = "#!/bin/sh
for word; do
  case $word in *.a) : > \"$word\" ;; esac
done
";

/// Checks types and lints of the whole workspace for macOS with clippy.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    Failure::unless_empty(arguments)?;
    ensure_target()?;
    StepTimes::around(|times| {
        let mut check = Step::cargo(
            "clippy",
            &["clippy", "--workspace", "--all-targets", "--locked", "--target", TARGET],
        )
        .args(["--", "-D", "warnings"]);
        // A Mac has the real tools.
        if !cfg!(target_os = "macos") {
            for (variable, path) in stand_ins(&binary::artifacts()?.join("macos"))? {
                check = check.env(variable, &path.to_string_lossy());
            }
        }
        check.run(times)?;
        println!("the types are right for {TARGET}; nothing was linked or run");
        Ok(())
    })
}

/// The standard library for macOS is a component of the toolchain that is not installed by default.
fn ensure_target() -> Result<(), Failure> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let asked = asked.map_err(|error| Failure::io("rustc", &error))?;
    if Path::new(String::from_utf8_lossy(&asked.stdout).trim()).is_dir() {
        Ok(())
    } else {
        Err(Failure::unavailable(format!(
            "Rust's standard library for {TARGET} is not here; install it with: rustup target add {TARGET}"
        )))
    }
}

/// Writes the stand-ins for compiler, archiver and SDK into a folder. Returns the variables that select them.
fn stand_ins(folder: &Path) -> Result<[(&'static str, PathBuf); 3], Failure> {
    let sdk = folder.join("sdk");
    fs::create_dir_all(&sdk).map_err(|error| Failure::io(&sdk.display().to_string(), &error))?;
    Ok([
        ("CC_aarch64_apple_darwin", script(folder.join("cc"), COMPILER)?),
        ("AR_aarch64_apple_darwin", script(folder.join("ar"), ARCHIVER)?),
        // Without it, build scripts would run `xcrun` to find the SDK.
        ("SDKROOT", sdk),
    ])
}

fn script(path: PathBuf, text: &str) -> Result<PathBuf, Failure> {
    // Unchanged files are not rewritten, because a concurrent check may be running them.
    if !fs::read_to_string(&path).is_ok_and(|found| found == text) {
        let written = fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        written.map_err(|error| Failure::io(&path.display().to_string(), &error))?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::stand_ins;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn the_stand_ins_make_what_they_are_asked_for() {
        let folder = std::env::temp_dir().join(format!("ringer-xtask-macos-{}", std::process::id()));
        let [(_, compiler), (_, archiver), (_, sdk)] = stand_ins(&folder).expect("a folder of ours");
        assert!(sdk.is_dir());
        let check = |tool: &Path, words: &[&str], made: &str| {
            let status = Command::new("sh").arg(tool).args(words).current_dir(&folder).status().expect("sh");
            assert!(status.success(), "{words:?}");
            assert_eq!(fs::read(folder.join(made)).expect(made), b"", "{words:?}");
        };
        check(&compiler, &["-O0", "-o", "a b.o", "-c", "a.c"], "a b.o");
        check(&archiver, &["cq", "libnotify.a", "a b.o"], "libnotify.a");
        fs::remove_dir_all(&folder).expect("it was ours");
    }
}
