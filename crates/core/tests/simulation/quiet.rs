//! What the person does not want to see now: snoozed notifications.

use std::collections::HashMap;

use ringer_core::attention::{Cause, Record};
use ringer_core::engine::Delivery;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, MessageId};
use test_support::Random;

/// Which notifications are snoozed, as the engine saved them.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    snoozed: HashMap<MessageId, i64>,
}

/// Makes a message one that snoozes a notification, perhaps until a moment that has passed.
pub(crate) fn snooze(random: &mut Random, wall_ms: i64, id: &MessageId, draft: &mut Draft) {
    let until_ms = wall_ms - 1000 + i64::try_from(random.below(10_000)).expect("it fits");
    draft.tag = Tag::Mark(Mark::Snooze);
    draft.key = Some(id.to_string());
    draft.body = until_ms.to_string();
}

impl Quiet {
    pub(crate) fn saved(&mut self, record: &Record, wall_ms: i64) {
        let before = self.snoozed.remove(&record.id);
        let came_back = record.trail.steps().filter(|step| step.cause == Cause::SnoozeEnded).count();
        let snoozed = record.trail.steps().filter(|step| matches!(step.cause, Cause::Snoozed { .. })).count();
        assert!(came_back <= snoozed, "it comes back once");
        match (before, record.snoozed_until) {
            (_, Some(until_ms)) => {
                assert!(record.is_read && !record.is_resolved, "only what is read and open is snoozed");
                self.snoozed.insert(record.id.clone(), until_ms);
            }
            (Some(until_ms), None) if came_back == snoozed => {
                assert!(until_ms <= wall_ms, "it came back too early");
            }
            (Some(_), None) => assert!(record.is_resolved || !record.is_read, "it is over, or unread"),
            (None, None) => {}
        }
    }

    pub(crate) fn deleted(&mut self, id: &MessageId) {
        self.snoozed.remove(id);
    }

    pub(crate) fn delivered(&self, delivery: &Delivery) {
        assert!(!self.snoozed.contains_key(&delivery.id), "a snoozed notification went out");
    }

    /// Everything that was due came back.
    pub(crate) fn check_at_end(&self, wall_ms: i64) {
        assert!(self.snoozed.values().all(|until_ms| *until_ms > wall_ms), "overdue, and did not come back");
    }
}
