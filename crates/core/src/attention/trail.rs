//! The trail: what happened to a notification, step by step, as text for a person.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How many steps are kept. At the limit the first half stays and the oldest of the second half is dropped: the beginning
/// and the end answer most questions.
pub const MAX_TRAIL_STEPS: usize = 64;

/// One step of a trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrailStep {
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What happened, and why.
    pub text: String,
}

/// Everything that happened to one notification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trail {
    steps: VecDeque<TrailStep>,
}

impl Trail {
    /// Adds a step.
    pub fn add(&mut self, unix_ms: i64, text: impl Into<String>) {
        if self.steps.len() == MAX_TRAIL_STEPS {
            self.steps.remove(MAX_TRAIL_STEPS / 2);
        }
        self.steps.push_back(TrailStep { unix_ms, text: text.into() });
    }

    /// The steps, first to last.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &TrailStep> + DoubleEndedIterator {
        self.steps.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_stay() {
        let mut trail = Trail::default();
        for number in 0..1000 {
            trail.add(number, number.to_string());
        }
        let kept: Vec<i64> = trail.steps().map(|step| step.unix_ms).collect();
        assert_eq!(kept.len(), MAX_TRAIL_STEPS);
        assert_eq!((kept[0], kept[31], kept[32], kept[63]), (0, 31, 968, 999));
    }
}
