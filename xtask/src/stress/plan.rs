use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::delivery_record::Consumer;
use crate::binary::Profile;
use crate::failure::Failure;
use crate::flags::{CommonOptions, Flags};

const FLAGS: &str = "--writers N, --messages N, --listeners N, --hooks N, --rounds N, --kill";

/// The options.
#[derive(PartialEq, Debug)]
pub(super) struct Plan {
    pub(super) writers: u32,
    /// The number of messages of each writer.
    pub(super) messages: u32,
    /// The number of listeners that share one name. One more listens under another name.
    pub(super) listeners: u32,
    /// The number of concurrent hooks in each round.
    pub(super) hooks: u32,
    /// The number of rounds of hooks.
    pub(super) rounds: u32,
    pub(super) kill: bool,
    /// Writers start nothing new after its limit.
    pub(super) common: CommonOptions,
}

impl Plan {
    pub(super) fn short() -> Self {
        let common = CommonOptions { profile: Profile::Tested, ..CommonOptions::new(fresh_seed()) };
        Self { writers: 16, messages: 10, listeners: 3, hooks: 40, rounds: 4, kill: true, common }
    }

    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut plan = Self::default();
        let mut flags = Flags::of(arguments, FLAGS);
        while let Some(name) = flags.next_flag() {
            match name {
                "--writers" => plan.writers = flags.number(1..=4096)?,
                "--messages" => plan.messages = flags.number(1..=100_000)?,
                "--listeners" => plan.listeners = flags.number(1..=256)?,
                "--hooks" => plan.hooks = flags.number(0..=1000)?,
                "--rounds" => plan.rounds = flags.number(0..=1000)?,
                "--kill" => plan.kill = true,
                _ => plan.common.parse_flag(&mut flags)?,
            }
        }
        Ok(plan)
    }

    /// Returns the index and the consumer of each listener.
    pub(super) fn consumers(&self) -> impl Iterator<Item = (u32, Consumer)> {
        let shared = (0..self.listeners).map(|index| (index, Consumer::Lead));
        shared.chain([(self.listeners, Consumer::Audit)])
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            writers: 64,
            messages: 200,
            listeners: 4,
            hooks: 100,
            rounds: 20,
            kill: false,
            common: CommonOptions::new(fresh_seed()),
        }
    }
}

/// Returns a seed that differs from run to run and is short enough to type.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_micros()) + (since.as_secs() % 1_000) * 1_000_000
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writers, messages, listeners, hooks, rounds, common: CommonOptions { seed, .. }, .. } =
            self;
        let kill = if self.kill { ", killed at random" } else { "" };
        write!(
            f,
            "{writers} writers × {messages} messages, {listeners} listeners and an audit; {hooks} hooks at once × {rounds} rounds{kill}; --seed {seed}"
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
        let line = "--writers 2 --messages 3 --listeners 1 --hooks 4 --rounds 5 --kill --seed 9 --seconds-limit 5 --profile dev";
        let expect = Plan {
            writers: 2,
            messages: 3,
            listeners: 1,
            hooks: 4,
            rounds: 5,
            kill: true,
            common: CommonOptions { seed: 9, limit: Duration::from_secs(5), profile: Profile::Dev },
        };
        assert_eq!(parse(line), Ok(expect));
        assert_eq!(
            parse("").map(|plan| (plan.writers, plan.kill, plan.common.profile)),
            Ok((64, false, Profile::Release))
        );
    }

    #[test]
    fn a_wrong_word_is_a_usage_error() {
        for line in ["--writer 2", "--writers", "--writers 0", "--writers 9999", "--profile fast", "64"] {
            assert_eq!(parse(line), Err(64), "{line}");
        }
    }

    #[test]
    fn the_audit_listens_beside_the_others() {
        let consumers: Vec<u32> =
            Plan { listeners: 2, ..Plan::default() }.consumers().map(|(index, _)| index).collect();
        assert_eq!(consumers, [0, 1, 2]);
    }
}
