//! How much one source may say in a while.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::source::Source;

/// Sources whose past is remembered. One more forgets the one that was silent longest, which errs on the side of
/// letting something through.
pub const MAX_SOURCES: usize = 256;
/// The highest rate that is counted exactly; a higher one is as good as none.
pub const MAX_RATE: usize = 1024;

/// At most so many in such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many; at least one, at most [`MAX_RATE`].
    pub count: usize,
    /// In which time.
    pub per: Duration,
}

impl Rate {
    /// A rate, with a count brought into its bounds.
    pub fn new(count: usize, per: Duration) -> Self {
        Self { count: count.clamp(1, MAX_RATE), per }
    }

    fn count(self) -> usize {
        self.count.clamp(1, MAX_RATE)
    }
}

impl Default for Rate {
    /// Thirty a minute, the rate of the command line too.
    fn default() -> Self {
        Self::new(30, Duration::from_mins(1))
    }
}

/// What each source has said lately. What exceeds its rate waits: nothing here drops anything.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    said: BTreeMap<Source, VecDeque<Duration>>,
}

impl Rates {
    /// Whether a source may say one more thing now.
    pub fn allows(&self, now: Duration, source: &Source, rate: Rate) -> bool {
        self.free_at(source, rate) <= now
    }

    /// When a source may say one more thing.
    pub fn free_at(&self, source: &Source, rate: Rate) -> Duration {
        let said = self.said.get(source);
        // With fewer than `count` before it, the next one is free; else it waits for the one `count` before it.
        let blocking =
            said.and_then(|said| said.len().checked_sub(rate.count()).and_then(|index| said.get(index)));
        blocking.map_or(Duration::ZERO, |at| at.saturating_add(rate.per))
    }

    /// Notes that a source said something.
    pub fn note(&mut self, now: Duration, source: &Source) {
        if !self.said.contains_key(source) && self.said.len() == MAX_SOURCES {
            let quietest = self.said.iter().min_by_key(|(_, said)| said.back().copied());
            if let Some(quietest) = quietest.map(|(source, _)| source.clone()) {
                self.said.remove(&quietest);
            }
        }
        let said = self.said.entry(source.clone()).or_default();
        if said.len() == MAX_RATE {
            said.pop_front();
        }
        said.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::Agent;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn so_many_in_such_a_time_per_source() {
        let rate = Rate::new(2, at(10));
        let mut rates = Rates::default();
        let allows = |rates: &Rates, now, source| rates.allows(at(now), source, rate);
        for now in [0, 3] {
            assert!(allows(&rates, now, &Source::User));
            rates.note(at(now), &Source::User);
        }
        assert!(!allows(&rates, 3, &Source::User) && !allows(&rates, 9, &Source::User));
        assert!(allows(&rates, 9, &Source::FileWatcher), "another source has its own");
        assert_eq!(rates.free_at(&Source::User, rate), at(10));
        assert!(allows(&rates, 10, &Source::User));
        rates.note(at(10), &Source::User);
        assert!(!allows(&rates, 12, &Source::User), "no more than two in any ten seconds");
        assert!(allows(&rates, 13, &Source::User));
    }

    #[test]
    fn a_rate_is_never_nothing() {
        assert!(Rates::default().allows(at(0), &Source::User, Rate { count: 0, per: at(10) }));
        assert_eq!(Rate::new(0, at(1)).count, 1);
        assert_eq!(Rate::default(), Rate::new(30, at(60)));
    }

    #[test]
    fn memory_is_bounded_in_sources_and_in_time() {
        let mut rates = Rates::default();
        for number in 0..1_000 {
            rates.note(at(number), &Source::Agent(Agent::new(&format!("a{number}")).unwrap()));
        }
        assert_eq!(rates.said.len(), MAX_SOURCES);
        assert!(rates.said.contains_key(&Source::Agent(Agent::new("a999").unwrap())), "the newest stay");
        for _ in 0..5_000 {
            rates.note(at(0), &Source::User);
        }
        assert_eq!(rates.said[&Source::User].len(), MAX_RATE);
    }
}
