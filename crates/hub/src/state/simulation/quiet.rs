//! What the person does not want to see now.

use ringer_core::attention::Cause;
use serde_json::{Value, json};

use super::Simulation;

impl Simulation {
    /// A moment within a few steps from now.
    pub(super) fn some_moment(&mut self) -> i64 {
        self.now().wall_ms + 1 + i64::try_from(self.random.below(20_000)).unwrap()
    }

    /// Mutes something, or ends every mute.
    pub(super) fn quiet_request(&mut self) -> (&'static str, Value) {
        let until = (!self.random.one_in(3)).then(|| self.some_moment());
        let target = match self.random.below(4) {
            0 => json!({ "agent": "system", "until_unix_ms": until }),
            1 => json!({ "workspace_id": "w", "until_unix_ms": until }),
            2 => json!({ "all": true, "until_unix_ms": until, "allow": ["error"] }),
            _ => return ("mute.remove", json!({})),
        };
        ("mute.set", target)
    }

    /// What was muted when it was decided went through no channel, until it was decided again.
    pub(super) fn check_mutes(&mut self) {
        for id in self.sent.clone() {
            let mut is_muted = false;
            for step in self.store.trail(id.as_str()).unwrap().steps() {
                match &step.cause {
                    Cause::MutedByPerson { .. } => is_muted = true,
                    Cause::Decided { channels, .. } if is_muted => {
                        assert!(channels.is_empty(), "{id} is muted, and goes through {channels:?}");
                    }
                    Cause::SnoozeEnded => is_muted = false,
                    Cause::Delivered { channel, .. } => {
                        assert!(!is_muted, "{id} is muted, and went through {channel}");
                    }
                    _ => {}
                }
            }
        }
        let stored = self.store.mutes().unwrap();
        let mut held: Vec<_> = self.state().notifications.engine().mutes().all().cloned().collect();
        held.sort_by_key(|mute| mute.target.to_string());
        assert_eq!(held, stored, "the store has what holds");
    }

    /// Everything is read now, so nothing is snoozed. What was came back once, or was over before, or was taken out of it.
    pub(super) fn check_snoozes(&mut self) {
        for id in self.sent.clone() {
            if let Some(record) = self.store.notification(id.as_str()).unwrap() {
                assert_eq!(
                    (record.snoozed_until.get(), record.is_resolved),
                    (None, true),
                    "{id} is still snoozed"
                );
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
