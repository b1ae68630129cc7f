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

/// Cheap steps run first: a formatting error should be reported before the tests run.
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
        // A separate workspace that nothing else builds. Its programs need libFuzzer; replaying its corpora does not.
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
        // Checks that the uploaded package builds on its own. `--allow-dirty`, because developers run this before committing.
        Step::cargo("publish", &["publish", "--dry-run", "-p", "ringer-term", "--allow-dirty", "--quiet"])
            .run(times)
    })
}

/// Runs the tests once: in a bare root if one can be created, so that they do not depend on programs of this machine.
/// `--host` is for a quicker result and leaves out the tests with real clients.
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

/// Returns why the tests must run on this machine instead of in a bare root.
fn why_not_bare() -> Result<Option<String>, Failure> {
    if let Err(why) = fresh::possible() {
        return Ok(Some(why));
    }
    // A clone contains only committed changes; a developer wants to test uncommitted ones.
    let changed = !is_ci() && fresh::is_dirty()?;
    Ok(changed.then(|| "the work tree has changes that are not committed".to_owned()))
}
