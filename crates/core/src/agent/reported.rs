//! What was reported of the current episode.

use serde::{Deserialize, Serialize};

use crate::message::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reported {
    pub(super) kind: Kind,
    /// Whether the kind was known, not guessed.
    pub(super) certain: bool,
    pub(super) has_text: bool,
}

impl Reported {
    /// Whether it says more than what was reported earlier of the same episode.
    pub(super) fn adds_to(self, earlier: Self) -> bool {
        let is_surer = self.certain && !earlier.certain;
        self.has_text && (is_surer || !earlier.has_text) || is_surer && self.kind != earlier.kind
    }

    /// What is known after both.
    pub(super) fn with(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let kind = if self.adds_to(earlier) { self.kind } else { earlier.kind };
        let (certain, has_text) = (self.certain || earlier.certain, self.has_text || earlier.has_text);
        Self { kind, certain, has_text }
    }
}
