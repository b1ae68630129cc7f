//! The trail: what became of a notification, step by step, in words a person understands.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Steps that are kept. With more, the first half stays and the oldest of the rest goes: how it began and how it ended
/// are what people ask for.
pub const MAX_STEPS: usize = 64;

/// One step of a notification's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What happened, and why.
    pub text: String,
}

/// Everything that happened to one notification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trail {
    steps: VecDeque<Step>,
}

impl Trail {
    /// Adds a step.
    pub fn add(&mut self, unix_ms: i64, text: impl Into<String>) {
        if self.steps.len() == MAX_STEPS {
            self.steps.remove(MAX_STEPS / 2);
        }
        self.steps.push_back(Step { unix_ms, text: text.into() });
    }

    /// The steps, first to last.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &Step> + DoubleEndedIterator {
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
        assert_eq!(kept.len(), MAX_STEPS);
        assert_eq!((kept[0], kept[31], kept[32], kept[63]), (0, 31, 968, 999));
    }
}
