//! The trail: what happened to a notification, step by step.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize, Serializer};

use super::cause::Cause;

/// The most steps that are kept. At the limit the first half stays and the oldest step of the second half is dropped: the
/// beginning and the end answer most questions.
pub const MAX_TRAIL_STEPS: usize = 64;

/// One step of a trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrailStep {
    /// When it happened, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What happened, and why.
    pub cause: Cause,
}

/// The history of one notification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "VecDeque<TrailStep>")]
pub struct Trail {
    /// `None` if there are no steps.
    #[expect(
        clippy::box_collection,
        reason = "most trails in memory are empty: a pointer is a quarter of a deque"
    )]
    steps: Option<Box<VecDeque<TrailStep>>>,
}

impl From<VecDeque<TrailStep>> for Trail {
    fn from(steps: VecDeque<TrailStep>) -> Self {
        Self { steps: Some(steps).filter(|steps| !steps.is_empty()).map(Box::new) }
    }
}

impl Serialize for Trail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.steps())
    }
}

impl Trail {
    /// Adds a step.
    pub fn add(&mut self, unix_ms: i64, cause: Cause) {
        let steps = self.steps.get_or_insert_default();
        if steps.len() == MAX_TRAIL_STEPS {
            steps.remove(MAX_TRAIL_STEPS / 2);
        }
        steps.push_back(TrailStep { unix_ms, cause });
    }

    /// Drops the first steps, because they are saved.
    pub(crate) fn forget_first(&mut self, steps: usize) {
        let Some(kept) = &mut self.steps else { return };
        kept.drain(..steps.min(kept.len()));
        kept.shrink_to_fit();
        if kept.is_empty() {
            self.steps = None;
        }
    }

    /// The steps, first to last.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &TrailStep> + DoubleEndedIterator {
        // An empty deque allocates nothing.
        static NONE: VecDeque<TrailStep> = VecDeque::new();
        self.steps.as_deref().unwrap_or(&NONE).iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_stay() {
        let mut trail = Trail::default();
        for number in 0..1000 {
            trail.add(number, Cause::Expired);
        }
        let kept: Vec<i64> = trail.steps().map(|step| step.unix_ms).collect();
        assert_eq!(kept.len(), MAX_TRAIL_STEPS);
        assert_eq!((kept[0], kept[31], kept[32], kept[63]), (0, 31, 968, 999));
    }
}
