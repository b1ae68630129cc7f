use crate::failure::Failure;
use crate::parts::Missing;
use crate::step::Step;
use crate::test;
use crate::tidy;
use crate::timetable::Timetable;

/// Cheap steps first: a change that is not formatted should not wait for the tests to be told so.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    Failure::unless_empty(arguments)?;
    Timetable::around(|times| {
        Step::cargo("fmt", &["fmt", "--all", "--check"]).run(times)?;
        Step::cargo(
            "clippy",
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        )
        .run(times)?;
        times.time("tidy", tidy::check)?;
        test::all(Missing::Install, &[], times)?;
        Step::cargo("doc", &["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .run(times)
    })
}
