//! What a restart must not change.

use ringer_core::attention::{Attention, UnreadReason};
use ringer_core::message::WorkspaceId;

/// What the person sees: each workspace's number, and the reasons behind it.
pub(crate) fn picture(attention: &Attention) -> Vec<(usize, Vec<bool>)> {
    (0..3)
        .map(|n| {
            let workspace = WorkspaceId::new(&format!("w{n}"));
            let reasons = [UnreadReason::Manual, UnreadReason::Panel, UnreadReason::Restored];
            let holds = reasons.iter().map(|reason| attention.holds(*reason, &workspace)).collect();
            (attention.badge(&workspace).0, holds)
        })
        .collect()
}
