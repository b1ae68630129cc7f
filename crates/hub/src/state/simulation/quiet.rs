//! Mutes and snoozes.

use ringer_core::attention::Cause;
use ringer_core::policy::RequestedMute;
use serde_json::{Value, json};

use super::Simulation;

impl Simulation {
    /// Returns a time within a few steps from now.
    pub(super) fn some_moment(&mut self) -> i64 {
        self.now().wall_ms + 1 + i64::try_from(self.random.below(20_000)).unwrap()
    }

    /// A request to mute something, or to remove all mutes.
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

    /// Checks that muted notifications went through no channel until they were decided again.
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
        let states = self.store.states().unwrap().into_iter();
        let stored: Vec<RequestedMute> = states.filter_map(|state| state.read()).collect();
        let mut held: Vec<_> = self.state().notifications.engine().mutes().all().cloned().collect();
        held.sort_by_key(|mute| mute.target.to_string());
        assert_eq!(held, stored, "the store has what holds");
    }

    /// Checks that nothing is snoozed, since everything is read now. A snoozed notification returned once, was resolved before,
    /// or was marked by the person.
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
                    // The command that ended the snooze may have been undone.
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
