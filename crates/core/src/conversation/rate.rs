//! The rate limit of each source.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::message::{Agent, MessagePart};

use crate::conversation::injection::Injection;
use crate::conversation::source::InjectionSource;

/// How many sources are tracked. At the limit, the source that has been silent longest is forgotten; at worst it can exceed
/// its rate once.
pub const MAX_SOURCES: usize = 256;
/// The highest count of a rate.
pub const MAX_RATE: usize = 1024;

/// A rate: at most `count` events in the time `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number of events, from 1 to [`MAX_RATE`].
    pub count: usize,
    /// The time span.
    pub per: Duration,
}

impl Rate {
    /// Creates a rate. Clamps the count to 1..=[`MAX_RATE`].
    pub fn new(count: usize, per: Duration) -> Self {
        Self { count: count.clamp(1, MAX_RATE), per }
    }

    fn count(self) -> usize {
        self.count.clamp(1, MAX_RATE)
    }
}

impl Default for Rate {
    /// Thirty per minute, as the default of `notify.rate_limit`.
    fn default() -> Self {
        Self::new(30, Duration::from_mins(1))
    }
}

/// Tracks when each source sent something. It drops nothing: the caller holds back whatever exceeds a rate.
#[derive(Debug, Clone, Default)]
pub struct RateTracker {
    sent: BTreeMap<InjectionSource, VecDeque<Duration>>,
}

impl RateTracker {
    /// Creates a tracker from the messages that entered an agent's turns, in order, each with its age. Identical neighbours of
    /// the same age count once, since they entered as one block.
    pub fn of_entered<'a>(
        now: Duration,
        agent: &Agent,
        entered: impl IntoIterator<Item = (&'a MessagePart, Duration)>,
    ) -> Self {
        let (mut rates, mut last) = (Self::default(), None);
        for (part, ago) in entered {
            let Some(injection) = Injection::of(part, agent) else { continue };
            let is_repeated = last.as_ref().is_some_and(|(before, then): &(Injection, _)| {
                *then == ago && before.has_same_content(&injection)
            });
            if !is_repeated {
                rates.record(now.saturating_sub(ago), &injection.source);
            }
            last = Some((injection, ago));
        }
        rates
    }

    /// Returns true if a source may send now.
    pub fn allows(&self, now: Duration, source: &InjectionSource, rate: Rate) -> bool {
        self.free_at(source, rate) <= now
    }

    /// Returns when a source may send next.
    pub fn free_at(&self, source: &InjectionSource, rate: Rate) -> Duration {
        let sent = self.sent.get(source);
        // With fewer than `count` events so far, at once; otherwise `per` after the event `count` places back.
        let blocking =
            sent.and_then(|sent| sent.len().checked_sub(rate.count()).and_then(|index| sent.get(index)));
        blocking.map_or(Duration::ZERO, |at| at.saturating_add(rate.per))
    }

    /// Records that a source sent something.
    pub fn record(&mut self, now: Duration, source: &InjectionSource) {
        if !self.sent.contains_key(source) && self.sent.len() == MAX_SOURCES {
            let longest_silent = self.sent.iter().min_by_key(|(_, sent)| sent.back().copied());
            if let Some(longest_silent) = longest_silent.map(|(source, _)| source.clone()) {
                self.sent.remove(&longest_silent);
            }
        }
        let sent = self.sent.entry(source.clone()).or_default();
        if sent.len() == MAX_RATE {
            sent.pop_front();
        }
        sent.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tag;
    use crate::{Draft, Kind, Message, MessageId, Scope, Sender};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_rate_limits_each_source_by_itself() {
        let rate = Rate::new(2, at(10));
        let mut rates = RateTracker::default();
        let allows = |rates: &RateTracker, now, source| rates.allows(at(now), source, rate);
        for now in [0, 3] {
            assert!(allows(&rates, now, &InjectionSource::User));
            rates.record(at(now), &InjectionSource::User);
        }
        assert!(!allows(&rates, 3, &InjectionSource::User) && !allows(&rates, 9, &InjectionSource::User));
        assert!(allows(&rates, 9, &InjectionSource::FileWatcher), "another source has its own");
        assert_eq!(rates.free_at(&InjectionSource::User, rate), at(10));
        assert!(allows(&rates, 10, &InjectionSource::User));
        rates.record(at(10), &InjectionSource::User);
        assert!(!allows(&rates, 12, &InjectionSource::User), "no more than two in any ten seconds");
        assert!(allows(&rates, 13, &InjectionSource::User));
    }

    /// Two identical messages in one result count once. The same message in the next result counts again.
    #[test]
    fn what_entered_counts_as_it_was_shown() {
        let agent = Agent::new("a1").unwrap();
        let part = |text: &str, seq: i64| {
            let sender = Sender::new("w1").unwrap();
            let draft = Draft::tagged(Scope::global(), sender, Tag::Notice(Kind::Status), text);
            let message = Message { seq, id: MessageId::new(0, [0; 10]), unix_ms: 0, draft, machine: None };
            MessagePart { message, number: 0, of: 1 }
        };
        let parts = [part("x", 1), part("x", 2), part("y", 3), part("x", 4), part("x", 5)];
        let entered = parts.iter().zip([at(9), at(9), at(9), at(9), at(5)]);
        let rates = RateTracker::of_entered(at(100), &agent, entered);
        let sent = rates.sent.values().next().unwrap();
        assert_eq!(*sent, [at(91), at(91), at(91), at(95)]);
    }

    #[test]
    fn a_rate_allows_at_least_one() {
        assert!(RateTracker::default().allows(at(0), &InjectionSource::User, Rate { count: 0, per: at(10) }));
        assert_eq!(Rate::new(0, at(1)).count, 1);
        assert_eq!(Rate::default(), Rate::new(30, at(60)));
    }

    #[test]
    fn memory_is_bounded_in_sources_and_in_time() {
        let mut rates = RateTracker::default();
        for number in 0..1_000 {
            rates.record(at(number), &InjectionSource::Agent(Agent::new(&format!("a{number}")).unwrap()));
        }
        assert_eq!(rates.sent.len(), MAX_SOURCES);
        assert!(
            rates.sent.contains_key(&InjectionSource::Agent(Agent::new("a999").unwrap())),
            "the newest stay"
        );
        for _ in 0..5_000 {
            rates.record(at(0), &InjectionSource::User);
        }
        assert_eq!(rates.sent[&InjectionSource::User].len(), MAX_RATE);
    }
}
