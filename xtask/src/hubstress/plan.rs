use std::fmt;

use crate::binary::Profile;
use crate::failure::Failure;
use crate::flags::{CommonOptions, Flags};

const FLAGS: &str = "--kills N, --writers N, --races N, --endings N, --tags";

/// The default seed.
const SEED: u64 = 1;

/// The options.
#[derive(PartialEq, Debug)]
pub(super) struct Plan {
    /// How often the hub is killed.
    pub(super) kills: u32,
    /// The number of threads that send messages throughout the run.
    pub(super) writers: u32,
    /// How often two hubs race.
    pub(super) races: u32,
    /// How often a message is sent around the moment when a hub exits on its own.
    pub(super) endings: u32,
    /// The notification server also replaces popups by tag.
    pub(super) by_tag: bool,
    pub(super) common: CommonOptions,
}

impl Plan {
    pub(super) fn short() -> Self {
        let common = CommonOptions { profile: Profile::Tested, ..CommonOptions::new(SEED) };
        Self { kills: 20, writers: 4, races: 4, endings: 10, by_tag: false, common }
    }

    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self::default();
        let mut flags = Flags::of(arguments, FLAGS);
        while let Some(name) = flags.next_flag() {
            match name {
                "--kills" => plan.kills = flags.number(0..=100_000)?,
                "--writers" => plan.writers = flags.number(1..=256)?,
                "--races" => plan.races = flags.number(0..=100_000)?,
                "--endings" => plan.endings = flags.number(0..=100_000)?,
                "--tags" => plan.by_tag = true,
                _ => plan.common.parse_flag(&mut flags)?,
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
            by_tag: false,
            common: CommonOptions::new(SEED),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, writers, races, endings, by_tag, common: CommonOptions { seed, .. } } = self;
        let server = if *by_tag { ", popups by tag" } else { "" };
        write!(
            f,
            "{kills} kills under {writers} writers{server}, {races} races, {endings} endings; --seed {seed}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{CommonOptions, Plan};
    use crate::binary::Profile;
    use std::time::Duration;

    fn parse(line: &str) -> Result<Plan, u8> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Plan::parse(&words).map_err(|failure| failure.code())
    }

    #[test]
    fn everything_can_be_chosen() {
        let line =
            "--kills 2 --writers 3 --races 0 --endings 4 --tags --seed 9 --seconds-limit 5 --profile dev";
        let expect = Plan {
            kills: 2,
            writers: 3,
            races: 0,
            endings: 4,
            by_tag: true,
            common: CommonOptions { seed: 9, limit: Duration::from_secs(5), profile: Profile::Dev },
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
