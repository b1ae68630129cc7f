//! What the person does not want to see now.

use ringer_core::attention::Cause;

use super::Simulation;

impl Simulation {
    /// A moment within a few steps from now.
    pub(super) fn some_moment(&mut self) -> i64 {
        self.now().wall_ms + 1 + i64::try_from(self.random.below(20_000)).unwrap()
    }

    /// Everything is read now, so nothing is snoozed. What was came back once, or was over before, or was taken out of it.
    pub(super) fn check_snoozes(&mut self) {
        for id in self.sent.clone() {
            if let Some(record) = self.store.notification(id.as_str()).unwrap() {
                assert_eq!((record.snoozed_until, record.is_resolved), (None, true), "{id} is still snoozed");
            }
            let mut is_snoozed = false;
            for step in self.store.trail(id.as_str()).unwrap().steps() {
                match step.cause {
                    // A command that ended it may have been taken back.
                    Cause::Snoozed { .. } | Cause::TakenBack { .. } => is_snoozed = true,
                    Cause::SnoozeEnded => {
                        assert!(is_snoozed, "{id} came back twice, or after it was over");
                        is_snoozed = false;
                    }
                    Cause::MarkedRead { .. } | Cause::MarkedUnread | Cause::Resolved { .. } => {
                        is_snoozed = false;
                    }
                    _ => {}
                }
            }
        }
    }
}
