use crate::clients;
use crate::damage;
use crate::failure::Failure;
use crate::hubstress;
use crate::killpoints;
use crate::parts::{self, Missing};
use crate::skips;
use crate::step::{self, Step};
use crate::step_times::StepTimes;
use crate::stress;

/// All targets except benches: those would measure for minutes and test nothing.
const TARGETS: &[&str] = &["--lib", "--bins", "--tests", "--examples"];

/// The selection of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Unit tests and one end-to-end test of each kind, for use during development.
    Quick,
    All,
    /// Only the tests with real clients.
    Clients,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (missing, extent, arguments) = ours(arguments);
    StepTimes::around(|times| match extent {
        Extent::Quick => quick(missing, arguments, times),
        Extent::All => all(missing, arguments, times),
        Extent::Clients => clients::test(missing, arguments, times),
    })
}

/// Parses xtask's flags, which come first. The remaining arguments are for the test runner.
fn ours(mut arguments: &[String]) -> (Missing, Extent, &[String]) {
    let (mut missing, mut extent) = (Missing::Install, Extent::All);
    while let Some((first, rest)) = arguments.split_first() {
        match first.as_str() {
            "--no-install" => missing = Missing::Report,
            "--quick" => extent = Extent::Quick,
            "--clients" => extent = Extent::Clients,
            _ => break,
        }
        arguments = rest;
    }
    (missing, extent, arguments)
}

/// `.config/nextest.toml` selects these tests. Plain `cargo test` cannot select as precisely and runs the unit tests.
fn quick(missing: Missing, arguments: &[String], times: &mut StepTimes) -> Result<(), Failure> {
    parts::ensure(missing, times)?;
    let step = if has_nextest() {
        Step::cargo("quick tests", &["nextest", "run", "--workspace", "--profile", "quick"]).args(TARGETS)
    } else {
        Step::cargo("quick tests", &["test", "--workspace", "--lib", "--bins"])
    };
    skips::run_listing(step.args(step::FEATURES).args(arguments), times)?;
    eprintln!("the other tests, doctests, stress, kill points and damage left out: cargo xtask test");
    Ok(())
}

fn has_nextest() -> bool {
    parts::succeeds(step::cargo(), &["nextest", "--version"])
}

pub(crate) fn all(missing: Missing, arguments: &[String], times: &mut StepTimes) -> Result<(), Failure> {
    parts::ensure(missing, times)?;
    let runner: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test"] };
    let scope = Scope::of(arguments);
    skips::run_listing(Step::cargo("tests", runner).args(scope.flags()).args(arguments), times)?;
    if !scope.is_everything() {
        eprintln!(
            "doctests, stress, kill points and damage left out: the arguments choose packages or targets"
        );
        return Ok(());
    }
    // nextest does not run doctests.
    Step::cargo("doctests", &["test", "--workspace", "--doc"]).args(step::FEATURES).run(times)?;
    if names_tests(arguments) {
        eprintln!("stress, kill points and damage left out: the arguments choose tests");
        return Ok(());
    }
    stress::short(times)?;
    hubstress::short(times)?;
    killpoints::with_dev_binary(times)?;
    damage::short(times)?;
    eprintln!("tests with real clients left out: cargo xtask test --clients");
    Ok(())
}

/// Returns true if an argument may be the name of a test. The value of a flag also counts; then less runs, never more.
fn names_tests(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| !argument.starts_with('-'))
}

/// The selections that the arguments leave to xtask. Cargo ignores `-p` beside `--workspace`, and adds `--test it` to
/// `--tests`: the default flags would turn a narrow run into a full one.
#[derive(PartialEq, Eq, Debug)]
struct Scope {
    packages_are_ours: bool,
    targets_are_ours: bool,
}

impl Scope {
    fn of(arguments: &[String]) -> Self {
        // Arguments after `--` are for the test programs.
        let ours = || arguments.iter().take_while(|argument| *argument != "--");
        Self {
            packages_are_ours: !ours().any(|argument| chooses_packages(argument)),
            targets_are_ours: !ours().any(|argument| chooses_targets(argument)),
        }
    }

    fn flags(&self) -> Vec<&'static str> {
        // Cargo rejects a feature of one crate if only another crate is selected.
        let packages: &[&str] =
            if self.packages_are_ours { &["--workspace", step::FEATURES[0], step::FEATURES[1]] } else { &[] };
        let targets = if self.targets_are_ours { TARGETS } else { &[] };
        packages.iter().chain(targets).copied().collect()
    }

    fn is_everything(&self) -> bool {
        self.packages_are_ours && self.targets_are_ours
    }
}

fn chooses_packages(argument: &str) -> bool {
    let short = argument.starts_with("-p") && !argument.starts_with("--");
    short || matches!(flag_name(argument), "--package" | "--workspace" | "--all")
}

fn chooses_targets(argument: &str) -> bool {
    matches!(
        flag_name(argument),
        "--lib" | "--bin" | "--bins" | "--test" | "--tests" | "--example" | "--examples" | "--all-targets"
    )
}

/// Returns `--package` for `--package=ringer-term`.
fn flag_name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::{Extent, Scope, names_tests, ours};
    use crate::parts::Missing;

    #[test]
    fn our_flags_stand_first_in_any_order() {
        fn check(arguments: &str, missing: Missing, extent: Extent, rest: &str) {
            let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let found = ours(&words);
            assert_eq!(
                (found.0, found.1, found.2.join(" ").as_str()),
                (missing, extent, rest),
                "{arguments}"
            );
        }
        check("", Missing::Install, Extent::All, "");
        check("--clients idle -- --nocapture", Missing::Install, Extent::Clients, "idle -- --nocapture");
        check("--clients --no-install", Missing::Report, Extent::Clients, "");
        check("--quick -p x", Missing::Install, Extent::Quick, "-p x");
        check("--no-install --clients -p x", Missing::Report, Extent::Clients, "-p x");
        check("-- --clients", Missing::Install, Extent::All, "-- --clients");
    }

    #[test]
    fn one_test_does_not_bring_the_stress_run_along() {
        fn check(arguments: &str, expect: bool) {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            assert_eq!(names_tests(&arguments), expect, "{arguments:?}");
        }
        check("", false);
        check("--no-fail-fast --profile=ci", false);
        check("scanner", true);
        check("-- scanner", true);
    }

    #[test]
    fn a_narrow_run_stays_narrow() {
        fn check(arguments: &str, expect: &str) {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            assert_eq!(Scope::of(&arguments).flags().join(" "), expect, "{arguments:?}");
        }
        let targets = "--lib --bins --tests --examples";
        let workspace = "--workspace --features ringer/nats";
        let everything = format!("{workspace} {targets}");
        check("", &everything);
        check("scanner --no-fail-fast", &everything);
        check("--profile ci", &everything);
        check("--retries=2 -- -p --lib", &everything);
        check("-p ringer-term", targets);
        check("-pringer-term", targets);
        check("--package=ringer-term osc", targets);
        check("--test it", workspace);
        check("-p ringer --bin ringer", "");
    }

    #[test]
    fn benches_are_never_run_as_tests() {
        let flags = Scope::of(&[]).flags();
        assert!(!flags.contains(&"--all-targets") && !flags.contains(&"--benches"), "{flags:?}");
        assert!(flags.contains(&"--lib"), "without any target flag cargo would choose for itself: {flags:?}");
    }
}
