//! Limits how much goes into one tool result, and the rate of each source.
//!
//! Usually all pending injections go, one block each, and the budget has no effect. If there is too much (a file watcher
//! during a checkout, a looping agent), identical neighbours are merged, each source is limited to its rate, and whatever does
//! not fit waits for the next tool result. Nothing is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use crate::conversation::augment::BLANK_LINE;
use crate::conversation::injection::Injection;
use crate::conversation::source::InjectionSource;
use crate::message::{Agent, MessagePart, SessionNonce};

/// The default of [`InjectionBudget::max_pending`]. The number is a choice, not a measurement.
pub const DEFAULT_MAX_PENDING: usize = 20;
/// How much Claude Code accepts from one hook: 10,000 characters. It writes longer output to a file, which the model may not
/// read. Counted in bytes here, which is never less than the number of characters.
pub const CLAUDE_CODE_MAX_BYTES: usize = 10_000;

/// The limits of one tool result. They apply only when `max_pending` or `max_bytes` is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectionBudget {
    /// The limits apply if more injections than this are pending.
    pub max_pending: usize,
    /// The limits apply if the blocks have more bytes than this. Also the most that one tool result gets then.
    pub max_bytes: usize,
    /// The rate of each source while the limits apply.
    pub rate: Rate,
}

impl Default for InjectionBudget {
    fn default() -> Self {
        Self { max_pending: DEFAULT_MAX_PENDING, max_bytes: CLAUDE_CODE_MAX_BYTES, rate: Rate::default() }
    }
}

/// One block for the tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedBlock {
    /// The content. If merged, it says how many injections it represents.
    pub injection: Injection,
    /// The indexes of the pending injections it represents.
    pub pending_range: Range<usize>,
}

impl InjectionBudget {
    /// Returns true if the limits apply to these injections.
    pub fn is_exceeded(&self, pending: &[&Injection]) -> bool {
        // The count first: it is cheaper than adding up bytes.
        pending.len() > self.max_pending
            || pending.iter().map(|one| cost(one)).sum::<usize>() > self.max_bytes
    }

    /// Selects the injections that go now, in order; the rest stays pending. At least one that the rates allow always goes, even
    /// if it exceeds `max_bytes` on its own: otherwise it would wait forever.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringer_core::MessageId;
    /// use ringer_core::message::Agent;
    /// use ringer_core::conversation::{Injection, RateTracker, InjectionSource, InjectionBudget};
    ///
    /// let agent = Agent::new("a1")?;
    /// let pending: Vec<Injection> = (0..21)
    ///     .map(|n| Injection::new(MessageId::new(n, [0; 10]), agent.clone(), InjectionSource::FileWatcher, "main.rs changed"))
    ///     .collect::<Result<_, _>>()?;
    /// let pending: Vec<&Injection> = pending.iter().collect();
    ///
    /// let mut rates = RateTracker::default();
    /// let within = InjectionBudget::default().select(Duration::ZERO, &pending[..20], &mut rates);
    /// assert_eq!(within.len(), 20);
    /// let exceeded = InjectionBudget::default().select(Duration::ZERO, &pending, &mut rates);
    /// assert_eq!((exceeded.len(), exceeded[0].injection.times()), (1, 21));
    /// # Ok::<(), ringer_core::conversation::Error>(())
    /// ```
    pub fn select(
        &self,
        now: Duration,
        pending: &[&Injection],
        rates: &mut RateTracker,
    ) -> Vec<SelectedBlock> {
        let is_exceeded = self.is_exceeded(pending);
        let candidates = if is_exceeded { merge_identical(pending) } else { one_by_one(pending) };
        let (mut selected, mut left) = (Vec::new(), self.max_bytes);
        for candidate in candidates {
            let source = &candidate.injection.source;
            if is_exceeded {
                // It stays pending, as will later ones of its source. Other sources are not affected.
                if !rates.allows(now, source, self.rate) {
                    continue;
                }
                let cost = cost(&candidate.injection);
                if cost > left && !selected.is_empty() {
                    break;
                }
                left = left.saturating_sub(cost);
            }
            rates.record(now, source);
            selected.push(candidate);
        }
        selected
    }

    /// Selects the messages and parts that go now, out of those pending for an agent. Returns their indexes.
    pub fn select_parts(
        &self,
        now: Duration,
        pending: &[MessagePart],
        agent: &Agent,
        rates: &mut RateTracker,
    ) -> Vec<usize> {
        let injections: Vec<(usize, Injection)> = pending
            .iter()
            .enumerate()
            .filter_map(|(index, part)| Some((index, Injection::of(part, agent)?)))
            .collect();
        let ready: Vec<&Injection> = injections.iter().map(|(_, injection)| injection).collect();
        let selected = self.select(now, &ready, rates).into_iter().flat_map(|block| block.pending_range);
        selected.filter_map(|at| injections.get(at).map(|(index, _)| *index)).collect()
    }

    /// Returns the injections for selected messages, in order, with identical neighbours merged if the limits apply.
    pub fn blocks_of(
        &self,
        now: Duration,
        selected: &[MessagePart],
        agent: &Agent,
        rates: &mut RateTracker,
    ) -> Vec<Injection> {
        let injections: Vec<Injection> =
            selected.iter().filter_map(|part| Injection::of(part, agent)).collect();
        let all: Vec<&Injection> = injections.iter().collect();
        self.select(now, &all, rates).into_iter().map(|block| block.injection).collect()
    }
}

/// Returns the bytes that a block adds to a tool result. All nonces have the same length.
fn cost(injection: &Injection) -> usize {
    BLANK_LINE.len() + injection.block(Some(&SessionNonce::new([0; 16]))).len()
}

fn one_by_one(pending: &[&Injection]) -> Vec<SelectedBlock> {
    let single = |(index, one): (usize, &&Injection)| SelectedBlock {
        injection: (*one).clone(),
        pending_range: index..index + 1,
    };
    pending.iter().enumerate().map(single).collect()
}

/// Merges identical neighbours. The result keeps the id of the first.
fn merge_identical(pending: &[&Injection]) -> Vec<SelectedBlock> {
    let mut start = 0;
    pending
        .chunk_by(|one, next| one.has_same_content(next))
        .map(|run| {
            let pending_range = start..start + run.len();
            start = pending_range.end;
            SelectedBlock { injection: run[0].repeated(run.len()), pending_range }
        })
        .collect()
}

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
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::injection::injection;
    use crate::message::Tag;
    use crate::{Draft, Kind, Message, MessageId, Scope, Sender};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn pending(texts: &[&str]) -> Vec<Injection> {
        texts
            .iter()
            .enumerate()
            .map(|(id, text)| {
                let (source, text) = text.split_once('/').unwrap_or(("file_watcher", text));
                injection(id, source, text)
            })
            .collect()
    }

    /// The text and the count of each selected injection.
    fn select(limits: &InjectionBudget, pending: &[Injection]) -> Vec<(String, usize)> {
        let pending: Vec<&Injection> = pending.iter().collect();
        let chosen = limits.select(at(0), &pending, &mut RateTracker::default());
        chosen.iter().map(|one| (one.injection.text().to_owned(), one.injection.times())).collect()
    }

    fn check(limits: &InjectionBudget, texts: &[&str], expected: &[(&str, usize)]) {
        let expected: Vec<(String, usize)> =
            expected.iter().map(|(text, times)| ((*text).into(), *times)).collect();
        assert_eq!(select(limits, &pending(texts)), expected, "{texts:?}");
    }

    /// A budget whose limits apply with more than one pending injection.
    fn low_limits() -> InjectionBudget {
        InjectionBudget { max_pending: 1, ..InjectionBudget::default() }
    }

    #[test]
    fn the_limits_apply_only_over_twenty_pending() {
        check(&InjectionBudget::default(), &["same"; 20], &[("same", 1); 20]);
        check(&InjectionBudget::default(), &["same"; 21], &[("same", 21)]);
        check(
            &InjectionBudget { max_pending: 2, ..InjectionBudget::default() },
            &["same"; 3],
            &[("same", 3)],
        );
    }

    #[test]
    fn the_limits_apply_over_the_byte_limit_too() {
        let big = "x".repeat(4_000);
        check(&InjectionBudget::default(), &[&big, &big], &[(&big, 1), (&big, 1)]);
        check(&InjectionBudget::default(), &[&big, &big, &big], &[(&big, 3)]);
        check(&InjectionBudget { max_bytes: 10, ..InjectionBudget::default() }, &["a", "a"], &[("a", 2)]);
    }

    #[test]
    fn only_identical_neighbours_of_one_source_are_merged() {
        check(&low_limits(), &["a", "a", "b", "a"], &[("a", 2), ("b", 1), ("a", 1)]);
        check(
            &low_limits(),
            &["user/a", "agent:x/a", "agent:x/a", "agent:y/a"],
            &[("a", 1), ("a", 2), ("a", 1)],
        );
        check(&low_limits(), &["a", "a ", "A"], &[("a", 1), ("a ", 1), ("A", 1)]);
    }

    #[test]
    fn what_does_not_fit_waits_for_the_next_tool_result() {
        let texts: Vec<String> = (0..9).map(|number| format!("{number}{}", "x".repeat(3_000))).collect();
        let all = pending(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut left: Vec<&Injection> = all.iter().collect();
        let (mut gone, mut results, mut rates) = (Vec::new(), 0, RateTracker::default());
        while !left.is_empty() {
            let chosen = InjectionBudget::default().select(at(0), &left, &mut rates);
            let bytes: usize = chosen.iter().map(|one| cost(&one.injection)).sum();
            assert!(bytes <= CLAUDE_CODE_MAX_BYTES, "{bytes}");
            results += 1;
            let taken = chosen.last().unwrap().pending_range.end;
            gone.extend(chosen.into_iter().map(|one| one.injection));
            left.drain(..taken);
        }
        assert_eq!((gone, results), (all, 3), "in order, and none is lost");
    }

    #[test]
    fn at_least_one_always_goes() {
        let huge = "x".repeat(60_000);
        check(&InjectionBudget::default(), &[&huge, "small"], &[(&huge, 1)]);
        check(&InjectionBudget { max_bytes: 0, ..InjectionBudget::default() }, &["a", "b"], &[("a", 1)]);
    }

    #[test]
    fn what_exceeds_a_sources_rate_waits_and_other_sources_go() {
        let limits = InjectionBudget { rate: Rate::new(2, at(60)), ..low_limits() };
        let all = pending(&["a", "b", "c", "user/wait", "d"]);
        let all: Vec<&Injection> = all.iter().collect();
        let mut rates = RateTracker::default();
        let mut texts = |now, pending: &[&Injection]| -> Vec<String> {
            let chosen = limits.select(at(now), pending, &mut rates);
            chosen.iter().map(|one| one.injection.text().to_owned()).collect()
        };
        assert_eq!(texts(0, &all), ["a", "b", "wait"]);
        let left = [all[2], all[4]];
        assert_eq!(texts(59, &left), [""; 0]);
        assert_eq!(texts(60, &left), ["c", "d"], "waited, not lost");
    }

    #[test]
    fn a_rate_has_no_effect_within_the_limits() {
        let limits = InjectionBudget { rate: Rate::new(1, at(60)), ..InjectionBudget::default() };
        check(&limits, &["a", "b", "c"], &[("a", 1), ("b", 1), ("c", 1)]);
    }

    proptest! {
        #[test]
        fn nothing_is_dropped_doubled_or_reordered(
            texts in prop::collection::vec(prop::sample::select(vec!["a", "b", "user/a", "user/long long long"]), 0..40),
            limit in 0usize..30,
            budget in 0usize..600,
            count in 1usize..10,
        ) {
            let limits = InjectionBudget { max_pending: limit, max_bytes: budget, rate: Rate::new(count, at(60)) };
            let all = pending(&texts);
            let refs: Vec<&Injection> = all.iter().collect();
            let chosen = limits.select(at(0), &refs, &mut RateTracker::default());
            prop_assert_eq!(chosen.is_empty(), all.is_empty(), "at least one goes");
            for pair in chosen.windows(2) {
                prop_assert!(pair[0].pending_range.end <= pair[1].pending_range.start);
            }
            for one in &chosen {
                prop_assert_eq!(one.injection.times(), one.pending_range.len());
                prop_assert_eq!(&one.injection.id, &all[one.pending_range.start].id);
                prop_assert!(all[one.pending_range.clone()].iter().all(|other| other.has_same_content(&one.injection)));
            }
            if !limits.is_exceeded(&refs) {
                prop_assert!(chosen.iter().map(|one| &one.injection).eq(&all), "no limits, no change");
            } else if chosen.len() > 1 {
                prop_assert!(chosen.iter().map(|one| cost(&one.injection)).sum::<usize>() <= budget);
            }
        }
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
