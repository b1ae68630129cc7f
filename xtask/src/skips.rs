//! Skipped tests: a test that cannot run here appends a line to a file, which is listed at the end of the run.
//!
//! The writer is `crates/test-support`, which defines the same two variables.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::binary;
use crate::failure::Failure;
use crate::machine::is_ci;
use crate::step::Step;
use crate::step_times::StepTimes;

const FILE: &str = "RINGER_SKIPS";
const TESTS: &str = "RINGER_TESTS";

/// Runs a step of tests and lists the skipped ones, even if the step failed.
pub(crate) fn run_listing(step: Step, times: &mut StepTimes) -> Result<(), Failure> {
    let path = file()?;
    remove(&path)?;
    let step = step.env(FILE, &path.to_string_lossy());
    // In CI, everything that a test needs must be available.
    let step = if is_ci() && env::var_os(TESTS).is_none() { step.env(TESTS, "all") } else { step };
    let outcome = step.run(times);
    match fs::read_to_string(&path) {
        Ok(text) => eprint!("{}", listing(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::io(&path.display().to_string(), &error)),
    }
    remove(&path)?;
    outcome
}

/// Returns a new path for each run, because runs can be concurrent.
fn file() -> Result<PathBuf, Failure> {
    let path = binary::artifacts()?.join(format!("skipped-tests-{}", std::process::id()));
    // Absolute, because tests run in the folders of their packages.
    std::path::absolute(&path).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

fn remove(path: &PathBuf) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io(&path.display().to_string(), &error))
        }
        _ => Ok(()),
    }
}

/// Lists each test and reason once, although a test may report it several times.
fn listing(text: &str) -> String {
    let skips: BTreeSet<(&str, &str)> =
        text.lines().map(|line| line.split_once('\t').unwrap_or((line, "no reason"))).collect();
    let mut listing = match skips.len() {
        0 => return String::new(),
        1 => String::from("\n1 test was skipped, or a part of it:\n"),
        many => format!("\n{many} tests were skipped, or parts of them:\n"),
    };
    for (test, reason) in skips {
        // Writing into a String cannot fail.
        let _ = writeln!(listing, "  {test}: {reason}");
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::listing;

    #[test]
    fn each_skip_is_listed_once_with_its_reason() {
        fn check(text: &str, expect: &str) {
            assert_eq!(listing(text), expect, "{text:?}");
        }
        check("", "");
        check(
            "ringer a::b\tit needs root\n",
            "\n1 test was skipped, or a part of it:\n  ringer a::b: it needs root\n",
        );
        check("b\tx\na\ty\nb\tx\n", "\n2 tests were skipped, or parts of them:\n  a: y\n  b: x\n");
        check("torn", "\n1 test was skipped, or a part of it:\n  torn: no reason\n");
    }
}
