use std::fmt;
use std::time::Duration;

use crate::binary::Profile;
use crate::failure::Failure;
use crate::flags;

const FLAGS: &str =
    "--kills N, --writers N, --races N, --endings N, --seed N, --seconds-limit N, --profile NAME";

/// What the developer asked for.
#[derive(PartialEq, Debug)]
pub(super) struct Plan {
    /// How often the hub is killed.
    pub(super) kills: u32,
    /// How many send messages all the while.
    pub(super) writers: u32,
    /// How often two hubs race.
    pub(super) races: u32,
    /// How often a message comes about when a hub ends by itself.
    pub(super) endings: u32,
    pub(super) seed: u64,
    /// After this, nothing new is begun.
    pub(super) limit: Duration,
    pub(super) profile: Profile,
}

impl Plan {
    pub(super) fn short() -> Self {
        Self { kills: 20, writers: 4, races: 4, endings: 10, profile: Profile::Dev, ..Self::default() }
    }

    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let name = word.as_str();
            match name {
                "--kills" => plan.kills = flags::value(name, words.next(), 0..=100_000)?,
                "--writers" => plan.writers = flags::value(name, words.next(), 1..=256)?,
                "--races" => plan.races = flags::value(name, words.next(), 0..=100_000)?,
                "--endings" => plan.endings = flags::value(name, words.next(), 0..=100_000)?,
                "--seed" => plan.seed = flags::value(name, words.next(), 0..=u64::MAX)?,
                "--seconds-limit" => {
                    plan.limit = Duration::from_secs(flags::value(name, words.next(), 1..=86_400)?);
                }
                "--profile" => {
                    let profile = words.next().and_then(|word| Profile::named(word));
                    plan.profile = profile
                        .ok_or_else(|| Failure::usage("--profile takes dev, release or dist".into()))?;
                }
                _ => return Err(flags::unknown(name, FLAGS)),
            }
        }
        Ok(plan)
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            kills: 1000,
            writers: 8,
            races: 200,
            endings: 200,
            seed: 1,
            limit: Duration::from_mins(10),
            profile: Profile::Release,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, writers, races, endings, seed, .. } = self;
        write!(f, "{kills} kills under {writers} writers, {races} races, {endings} endings; --seed {seed}")
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::binary::Profile;
    use std::time::Duration;

    fn parse(line: &str) -> Result<Plan, u8> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Plan::parse(&words).map_err(|failure| failure.code())
    }

    #[test]
    fn everything_can_be_chosen() {
        let line = "--kills 2 --writers 3 --races 0 --endings 4 --seed 9 --seconds-limit 5 --profile dev";
        let expect = Plan {
            kills: 2,
            writers: 3,
            races: 0,
            endings: 4,
            seed: 9,
            limit: Duration::from_secs(5),
            profile: Profile::Dev,
        };
        assert_eq!(parse(line), Ok(expect));
        assert_eq!(parse("").map(|plan| (plan.kills, plan.races)), Ok((1000, 200)));
    }

    #[test]
    fn a_wrong_word_is_a_usage_error() {
        for line in ["--kill 2", "--kills", "--writers 0", "--profile fast", "64"] {
            assert_eq!(parse(line), Err(64), "{line}");
        }
    }
}
