//! What goes into the next tool result when there is too much of it.
//!
//! Usually everything goes, one block each, and nothing here has an effect. In a storm (a file watcher during a
//! checkout, a looping agent) identical neighbours become one, what does not fit goes into the next tool result, and no
//! source says more than its rate allows. Nothing is dropped.

use std::ops::Range;
use std::time::Duration;

use crate::augment::BLANK_LINE;
use crate::injection::Injection;
use crate::rate::{Rate, Rates};

/// More than this many pending are a storm.
pub const STORM_PENDING: usize = 20;
/// What Claude Code takes from one hook (10,000 characters; more it spills into a file, which the model may not read).
/// Counted in bytes here, of which a text has at least as many as characters, in any encoding.
pub const CLAUDE_CODE_BUDGET: usize = 10_000;

/// When it is a storm, and what may go then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storm {
    /// More pending than this are a storm.
    pub pending: usize,
    /// More bytes of blocks than this are a storm, and no tool result gets more.
    pub budget: usize,
    /// What one source may say, in a storm.
    pub rate: Rate,
}

impl Default for Storm {
    fn default() -> Self {
        Self { pending: STORM_PENDING, budget: CLAUDE_CODE_BUDGET, rate: Rate::default() }
    }
}

/// One block to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// What it says; a folded one also says for how many it stands.
    pub injection: Injection,
    /// Which of the pending ones it stands for.
    pub of: Range<usize>,
}

impl Storm {
    /// Whether this much is a storm.
    pub fn rages(&self, pending: &[&Injection]) -> bool {
        // Counting first: the bytes of very many need not be known.
        pending.len() > self.pending || pending.iter().map(|one| cost(one)).sum::<usize>() > self.budget
    }

    /// What goes now, in order; the rest stays pending. Of what its rate allows, at least one always goes, even if it
    /// is over the budget all by itself: else it would wait for ever.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringer_core::{Agent, MessageId};
    /// use ringer_turn::{Injection, Rates, Source, Storm};
    ///
    /// let agent = Agent::new("a1")?;
    /// let pending: Vec<Injection> = (0..21)
    ///     .map(|n| Injection::new(MessageId::new(n, [0; 10]), agent.clone(), Source::FileWatcher, "main.rs changed"))
    ///     .collect::<Result<_, _>>()?;
    /// let pending: Vec<&Injection> = pending.iter().collect();
    ///
    /// let mut rates = Rates::default();
    /// let calm = Storm::default().choose(Duration::ZERO, &pending[..20], &mut rates);
    /// assert_eq!(calm.len(), 20);
    /// let storm = Storm::default().choose(Duration::ZERO, &pending, &mut rates);
    /// assert_eq!((storm.len(), storm[0].injection.times()), (1, 21));
    /// # Ok::<(), ringer_turn::Error>(())
    /// ```
    pub fn choose(&self, now: Duration, pending: &[&Injection], rates: &mut Rates) -> Vec<Chosen> {
        let storm = self.rages(pending);
        let candidates = if storm { fold(pending) } else { one_by_one(pending) };
        let (mut chosen, mut left) = (Vec::new(), self.budget);
        for candidate in candidates {
            let source = &candidate.injection.source;
            if storm {
                // It waits, and so do the later ones of its source; others pass it.
                if !rates.allows(now, source, self.rate) {
                    continue;
                }
                let cost = cost(&candidate.injection);
                if cost > left && !chosen.is_empty() {
                    break;
                }
                left = left.saturating_sub(cost);
            }
            rates.note(now, source);
            chosen.push(candidate);
        }
        chosen
    }

    /// When something of this can go, looking at rates alone.
    pub fn free_at(&self, pending: &[&Injection], rates: &Rates) -> Option<Duration> {
        if !self.rages(pending) {
            return pending.first().map(|_| Duration::ZERO);
        }
        pending.iter().map(|one| rates.free_at(&one.source, self.rate)).min()
    }
}

/// The bytes that a block adds to a tool result.
fn cost(injection: &Injection) -> usize {
    BLANK_LINE.len() + injection.block().len()
}

fn one_by_one(pending: &[&Injection]) -> Vec<Chosen> {
    let single =
        |(index, one): (usize, &&Injection)| Chosen { injection: (*one).clone(), of: index..index + 1 };
    pending.iter().enumerate().map(single).collect()
}

/// Identical neighbours of one source become one, which keeps the id of the first.
fn fold(pending: &[&Injection]) -> Vec<Chosen> {
    let mut start = 0;
    pending
        .chunk_by(|one, next| one.says_the_same_as(next))
        .map(|run| {
            let of = start..start + run.len();
            start = of.end;
            Chosen { injection: run[0].folded(run.len()), of }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::injection;
    use proptest::prelude::*;

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

    /// Text and count of what goes.
    fn choose(storm: &Storm, pending: &[Injection]) -> Vec<(String, usize)> {
        let pending: Vec<&Injection> = pending.iter().collect();
        let chosen = storm.choose(at(0), &pending, &mut Rates::default());
        chosen.iter().map(|one| (one.injection.text().to_owned(), one.injection.times())).collect()
    }

    fn check(storm: &Storm, texts: &[&str], expected: &[(&str, usize)]) {
        let expected: Vec<(String, usize)> =
            expected.iter().map(|(text, times)| ((*text).into(), *times)).collect();
        assert_eq!(choose(storm, &pending(texts)), expected, "{texts:?}");
    }

    /// Everything above one pending is a storm.
    fn touchy() -> Storm {
        Storm { pending: 1, ..Storm::default() }
    }

    #[test]
    fn only_over_twenty_pending_are_a_storm() {
        check(&Storm::default(), &["same"; 20], &[("same", 1); 20]);
        check(&Storm::default(), &["same"; 21], &[("same", 21)]);
        check(&Storm { pending: 2, ..Storm::default() }, &["same"; 3], &[("same", 3)]);
    }

    #[test]
    fn over_the_byte_limit_is_a_storm_too() {
        let big = "x".repeat(4_000);
        check(&Storm::default(), &[&big, &big], &[(&big, 1), (&big, 1)]);
        check(&Storm::default(), &[&big, &big, &big], &[(&big, 3)]);
        check(&Storm { budget: 10, ..Storm::default() }, &["a", "a"], &[("a", 2)]);
    }

    #[test]
    fn only_identical_neighbours_of_one_source_fold() {
        check(&touchy(), &["a", "a", "b", "a"], &[("a", 2), ("b", 1), ("a", 1)]);
        check(&touchy(), &["user/a", "agent:x/a", "agent:x/a", "agent:y/a"], &[("a", 1), ("a", 2), ("a", 1)]);
        check(&touchy(), &["a", "a ", "A"], &[("a", 1), ("a ", 1), ("A", 1)]);
    }

    #[test]
    fn the_rest_of_a_budget_goes_to_the_next_tool_result() {
        let texts: Vec<String> = (0..9).map(|number| format!("{number}{}", "x".repeat(3_000))).collect();
        let all = pending(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut left: Vec<&Injection> = all.iter().collect();
        let (mut gone, mut results, mut rates) = (Vec::new(), 0, Rates::default());
        while !left.is_empty() {
            let chosen = Storm::default().choose(at(0), &left, &mut rates);
            let bytes: usize = chosen.iter().map(|one| cost(&one.injection)).sum();
            assert!(bytes <= CLAUDE_CODE_BUDGET, "{bytes}");
            results += 1;
            let taken = chosen.last().unwrap().of.end;
            gone.extend(chosen.into_iter().map(|one| one.injection));
            left.drain(..taken);
        }
        assert_eq!((gone, results), (all, 3), "in order, and none is lost");
    }

    #[test]
    fn at_least_one_always_goes() {
        let huge = "x".repeat(60_000);
        check(&Storm::default(), &[&huge, "small"], &[(&huge, 1)]);
        check(&Storm { budget: 0, ..Storm::default() }, &["a", "b"], &[("a", 1)]);
    }

    #[test]
    fn what_exceeds_a_sources_rate_waits_and_others_pass() {
        let storm = Storm { rate: Rate::new(2, at(60)), ..touchy() };
        let all = pending(&["a", "b", "c", "user/wait", "d"]);
        let all: Vec<&Injection> = all.iter().collect();
        let mut rates = Rates::default();
        let mut texts = |now, pending: &[&Injection]| -> Vec<String> {
            let chosen = storm.choose(at(now), pending, &mut rates);
            chosen.iter().map(|one| one.injection.text().to_owned()).collect()
        };
        assert_eq!(texts(0, &all), ["a", "b", "wait"]);
        let left = [all[2], all[4]];
        assert_eq!(texts(59, &left), [""; 0]);
        assert_eq!(texts(60, &left), ["c", "d"], "waited, not lost");
        assert_eq!(storm.free_at(&left, &rates), Some(at(120)));
        assert_eq!(storm.free_at(&left[..1], &rates), Some(at(0)), "one alone is no storm");
        assert_eq!(storm.free_at(&[], &rates), None);
    }

    #[test]
    fn a_rate_has_no_effect_outside_a_storm() {
        let storm = Storm { rate: Rate::new(1, at(60)), ..Storm::default() };
        check(&storm, &["a", "b", "c"], &[("a", 1), ("b", 1), ("c", 1)]);
    }

    proptest! {
        #[test]
        fn nothing_is_dropped_doubled_or_reordered(
            texts in prop::collection::vec(prop::sample::select(vec!["a", "b", "user/a", "user/long long long"]), 0..40),
            limit in 0usize..30,
            budget in 0usize..600,
            count in 1usize..10,
        ) {
            let storm = Storm { pending: limit, budget, rate: Rate::new(count, at(60)) };
            let all = pending(&texts);
            let refs: Vec<&Injection> = all.iter().collect();
            let chosen = storm.choose(at(0), &refs, &mut Rates::default());
            prop_assert_eq!(chosen.is_empty(), all.is_empty(), "at least one goes");
            for pair in chosen.windows(2) {
                prop_assert!(pair[0].of.end <= pair[1].of.start);
            }
            for one in &chosen {
                prop_assert_eq!(one.injection.times(), one.of.len());
                prop_assert_eq!(&one.injection.id, &all[one.of.start].id);
                prop_assert!(all[one.of.clone()].iter().all(|other| other.says_the_same_as(&one.injection)));
            }
            if !storm.rages(&refs) {
                prop_assert!(chosen.iter().map(|one| &one.injection).eq(&all), "no storm, no change");
            } else if chosen.len() > 1 {
                prop_assert!(chosen.iter().map(|one| cost(&one.injection)).sum::<usize>() <= budget);
            }
        }
    }
}
