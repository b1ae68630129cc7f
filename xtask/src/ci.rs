use crate::binary;
use crate::clients;
use crate::deny;
use crate::failure::Failure;
use crate::fresh;
use crate::machine::is_ci;
use crate::parts::Missing;
use crate::step::{self, Step};
use crate::step_times::StepTimes;
use crate::test;
use crate::tidy;

/// Cheap steps first: a change that is not formatted should not wait for the tests to be told so.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let on_host = match arguments {
        [flag] if flag == "--host" => true,
        others => {
            Failure::unless_empty(others)?;
            false
        }
    };
    StepTimes::around(|times| {
        Step::cargo("fmt", &["fmt", "--all", "--check"]).run(times)?;
        Step::cargo("clippy", &["clippy", "--workspace", "--all-targets", "--locked"])
            .args(step::FEATURES)
            .args(["--", "-D", "warnings"])
            .run(times)?;
        times.time("tidy", tidy::check)?;
        deny::check(times)?;
        // A workspace of its own, which nothing else builds. Its programs need libFuzzer, and its corpora do not.
        Step::cargo(
            "fuzz",
            &["test", "--locked", "--no-default-features", "--manifest-path", "fuzz/Cargo.toml"],
        )
        .args(["--target-dir"])
        .args([binary::artifacts()?])
        .run(times)?;
        if on_host {
            test::all(Missing::Install, &[], times)?;
        } else {
            tests(times)?;
            clients::test_in_ci(times)?;
        }
        Step::cargo("doc", &["doc", "--workspace", "--no-deps", "--locked"])
            .args(step::FEATURES)
            .env("RUSTDOCFLAGS", "-D warnings")
            .run(times)?;
        // What would be uploaded builds by itself. `--allow-dirty` because a developer may try it before committing.
        Step::cargo("publish", &["publish", "--dry-run", "-p", "ringer-term", "--allow-dirty", "--quiet"])
            .run(times)
    })
}

/// The tests run once: on a bare machine where one can be made, so that no program of this machine helps them. `--host` is
/// for a developer who wants to know sooner, and leaves out the tests with real clients.
fn tests(times: &mut StepTimes) -> Result<(), Failure> {
    let bare = match why_not_bare()? {
        None => {
            fresh::BareMachine::make(false, Missing::Install, times).map_err(|failure| failure.to_string())
        }
        Some(why) => Err(why),
    };
    match bare {
        Ok(bare) => bare.run(times),
        Err(why) => {
            eprintln!("the tests run on this machine and not on a bare one: {why}");
            test::all(Missing::Install, &[], times)
        }
    }
}

/// Why the tests have to run on this machine.
fn why_not_bare() -> Result<Option<String>, Failure> {
    if let Err(why) = fresh::possible() {
        return Ok(Some(why));
    }
    // What is to land is committed; a developer wants to know before that.
    let changed = !is_ci() && fresh::is_dirty()?;
    Ok(changed.then(|| "the work tree has changes that are not committed".to_owned()))
}
