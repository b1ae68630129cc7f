use crate::failure::Failure;
use crate::flags;
use crate::step::Step;
use crate::step_times::StepTimes;

/// Runs the simulation of the engine or the hub with many seeds, or repeats one seed.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(("--hub", arguments)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        let wanted = Wanted::of(arguments)?;
        let variable = if wanted.variable == "RINGER_SEED" { "RINGER_HUB_SEED" } else { "RINGER_HUB_SEEDS" };
        return StepTimes::around(|times| {
            Step::cargo("simulate", &["test", "--release", "-p", "ringer-hub", "--lib", "simulation"])
                .env(variable, &wanted.number.to_string())
                .run(times)
        });
    }
    let wanted = Wanted::of(arguments)?;
    StepTimes::around(|times| {
        Step::cargo(
            "simulate",
            &["test", "--release", "-p", "ringer-core", "--test", "simulation", "--", "--nocapture"],
        )
        .env(wanted.variable, &wanted.number.to_string())
        .run(times)
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    variable: &'static str,
    number: u64,
}

impl Wanted {
    fn of(arguments: &[String]) -> Result<Self, Failure> {
        let mut wanted = Self { variable: "RINGER_SEEDS", number: 10_000 };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (variable, bounds) = match word.as_str() {
                "--seeds" => ("RINGER_SEEDS", 1..=100_000_000),
                "--seed" => ("RINGER_SEED", 0..=u64::MAX),
                other => return Err(flags::unknown(other, "--seeds N, or --seed N to play one again")),
            };
            wanted = Self { variable, number: flags::value(word, words.next(), bounds)? };
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn many_seeds_or_one_again() {
        fn check(arguments: &[&str], expect: Option<(&'static str, u64)>) {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let found = Wanted::of(&arguments).ok().map(|wanted| (wanted.variable, wanted.number));
            assert_eq!(found, expect, "{arguments:?}");
        }
        check(&[], Some(("RINGER_SEEDS", 10_000)));
        check(&["--seeds", "5"], Some(("RINGER_SEEDS", 5)));
        check(&["--seed", "0"], Some(("RINGER_SEED", 0)));
        check(&["--seeds", "0"], None);
        check(&["--seeds"], None);
        check(&["5"], None);
    }
}
