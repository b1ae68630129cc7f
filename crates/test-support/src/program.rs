//! Programs and FIFOs that a test makes.
//!
//! Another process writes them. A child that is forked while a file is open for writing holds it open until it executes
//! its own program, and a program that is open for writing cannot be run ("Text file busy"). In `cargo test` some other
//! test is always starting something.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a program of a script for the shell, without its first line.
///
/// # Panics
///
/// Where it cannot be written.
#[track_caller]
pub fn make_program(path: &Path, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let Ok(mut shell) = command.spawn() else { panic!("sh does not start") };
    let text = format!("#!/bin/sh\n{script}\n");
    let written = shell.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    assert!(written && shell.wait().is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// Copies a program.
///
/// # Panics
///
/// Where that is not possible.
#[track_caller]
pub fn copy_program(program: &Path, path: &Path) {
    let copied = Command::new("cp").arg(program).arg(path).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

/// Makes a FIFO that is its owner's alone. rustix makes none on macOS.
///
/// # Panics
///
/// Where that is not possible.
#[track_caller]
pub fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "{} was not made", path.display());
}

#[cfg(test)]
mod tests {
    use super::{copy_program, make_program};
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn what_is_made_can_be_run() {
        let directory = tempfile::tempdir().unwrap();
        let (made, copied) = (directory.path().join("made"), directory.path().join("copied"));
        make_program(&made, "exit 7");
        copy_program(Path::new("/bin/false"), &copied);
        let codes = [made, copied].map(|path| Command::new(path).status().unwrap().code());
        assert_eq!(codes, [Some(7), Some(1)]);
    }
}
