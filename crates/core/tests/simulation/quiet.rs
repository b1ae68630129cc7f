//! What the person does not want to see now: what they snoozed and muted.

use std::collections::HashMap;

use ringer_core::attention::{Cause, Record};
use ringer_core::engine::{Delivery, FeatureValue, SavedState};
use ringer_core::message::{Mark, Place, ShownKind, Tag};
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_core::{Draft, MessageId};
use test_support::Random;

/// Which notifications are snoozed, and what is muted, as the engine saved them.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    snoozed: HashMap<MessageId, i64>,
    mutes: HashMap<MuteTarget, RequestedMute>,
}

/// Makes a message one that snoozes a notification, perhaps until a moment that has passed.
pub(crate) fn snooze(random: &mut Random, wall_ms: i64, id: &MessageId, draft: &mut Draft) {
    let until_ms = wall_ms - 1000 + i64::try_from(random.below(10_000)).expect("it fits");
    draft.tag = Tag::Mark(Mark::Snooze);
    draft.key = Some(id.to_string());
    draft.body = until_ms.to_string();
}

/// Makes a message one that mutes something, or ends a mute.
pub(crate) fn mute(random: &mut Random, wall_ms: i64, draft: &mut Draft) {
    let keys = ["all", "agent:agent0", "agent:agent1", "workspace:w0", "workspace:w1"];
    let key = *random.pick(&keys);
    draft.key = Some(key.to_owned());
    "command".clone_into(&mut draft.body);
    if random.below(3) == 0 {
        draft.tag = Tag::Mark(Mark::Unmute);
        draft.key = Some((*random.pick(&["every", key])).to_owned());
        return;
    }
    draft.tag = Tag::Mark(Mark::Mute);
    let until_unix_ms =
        (random.below(4) > 0).then(|| wall_ms + i64::try_from(random.below(5000)).expect("it fits"));
    let allow = if random.below(2) == 0 { vec![ShownKind::Question] } else { Vec::new() };
    let target = MuteTarget::parse(key).expect("a target");
    draft.body = RequestedMute { target, until_unix_ms, allow }.mark_text("command");
}

impl Quiet {
    pub(crate) fn saved(&mut self, record: &Record, wall_ms: i64) {
        let before = self.snoozed.remove(&record.id);
        let came_back = record.trail.steps().filter(|step| step.cause == Cause::SnoozeEnded).count();
        let snoozed = record.trail.steps().filter(|step| matches!(step.cause, Cause::Snoozed { .. })).count();
        assert!(came_back <= snoozed, "it comes back once");
        // It may be snoozed again before it came back.
        let is_about_it = |cause: &&Cause| matches!(cause, Cause::Snoozed { .. } | Cause::SnoozeEnded);
        let last = record.trail.steps().map(|step| &step.cause).rfind(is_about_it);
        match (before, record.snoozed_until.get()) {
            (_, Some(until_ms)) => {
                assert!(record.is_read && !record.is_resolved, "only what is read and open is snoozed");
                self.snoozed.insert(record.id.clone(), until_ms);
            }
            (Some(until_ms), None) if last == Some(&Cause::SnoozeEnded) => {
                assert!(until_ms <= wall_ms, "it came back too early");
            }
            (Some(_), None) => {
                assert!(record.is_resolved || !record.is_read, "it is over, or unread: {record:?}");
            }
            (None, None) => {}
        }
    }

    pub(crate) fn deleted(&mut self, id: &MessageId) {
        self.snoozed.remove(id);
    }

    pub(crate) fn mute_changed(&mut self, state: &SavedState) {
        let target = MuteTarget::parse(&state.key).expect("a target");
        match state.read() {
            Some(mute) => _ = self.mutes.insert(target, mute),
            None => assert!(self.mutes.remove(&target).is_some(), "a mute ends once"),
        }
    }

    /// What the next hub reads.
    pub(crate) fn states(&self) -> impl Iterator<Item = SavedState> {
        self.mutes.values().map(RequestedMute::saved)
    }

    pub(crate) fn is_muted(&self, record: &Record, wall_ms: i64) -> bool {
        self.mutes.values().filter(|mute| mute.holds(wall_ms)).any(|mute| {
            let is_meant = match &mute.target {
                MuteTarget::All => true,
                MuteTarget::Agent(agent) => **agent == *record.sender,
                MuteTarget::Workspace(workspace) => {
                    *workspace == record.place.workspace
                        || *workspace == Place::own_workspace(&record.scope).workspace
                }
            };
            is_meant && !mute.allow.contains(&record.shown_kind())
        })
    }

    pub(crate) fn delivered(&self, delivery: &Delivery, wall_ms: i64) {
        for mute in self.mutes.values().filter(|mute| mute.holds(wall_ms)) {
            let is_meant = match &mute.target {
                MuteTarget::All => true,
                MuteTarget::Agent(agent) => *agent == delivery.sender,
                MuteTarget::Workspace(workspace) => *workspace == delivery.place.workspace,
            };
            assert!(!is_meant || mute.allow.contains(&delivery.kind), "it is muted, and went out");
        }
        assert!(!self.snoozed.contains_key(&delivery.id), "a snoozed notification went out");
    }

    /// Everything that was due came back.
    pub(crate) fn check_at_end(&self, wall_ms: i64) {
        assert!(self.snoozed.values().all(|until_ms| *until_ms > wall_ms), "overdue, and did not come back");
    }
}
