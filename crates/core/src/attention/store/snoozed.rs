//! Notifications that are out of the way until a moment.

use super::NotificationStore;
use super::ordered::Slot;
use crate::attention::{Cause, OptionalTime, Record};
use crate::message::MessageId;

impl NotificationStore {
    /// When the next snoozed one comes back, in milliseconds since 1970.
    pub fn next_snooze_end(&self) -> Option<i64> {
        self.index.snoozed.first().map(|(until_ms, _)| *until_ms)
    }

    /// The snoozed ones that are to come back, this many at most.
    pub(crate) fn due_snoozed(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.snoozed.iter().take_while(|(until_ms, _)| *until_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Takes one out of the way until a moment. What is over is left as it is. Returns whether that changed it.
    pub(crate) fn snooze(&mut self, id: &MessageId, until_ms: i64, unix_ms: i64, cause: Cause) -> bool {
        let is_open = self.get(id).is_some_and(|record| !record.is_resolved);
        is_open && self.set_state_until(id, (true, false), Some(until_ms).into(), unix_ms, cause)
    }

    /// Makes one read or not, resolved or not, and snoozed or not, as it was before. Returns whether that changed it.
    pub(crate) fn take_back(&mut self, before: &Record, unix_ms: i64, cause: Cause) -> bool {
        let state = (before.is_read, before.is_resolved);
        self.set_state_until(&before.id, state, before.snoozed_until, unix_ms, cause)
    }

    /// A snoozed one comes back: read or not, and resolved or not.
    pub(crate) fn end_snooze(&mut self, id: &MessageId, state: (bool, bool), unix_ms: i64) {
        if self.get(id).is_none_or(|record| record.snoozed_until.is_none()) {
            return;
        }
        self.set_state_until(id, state, OptionalTime::NONE, unix_ms, Cause::SnoozeEnded);
    }

    /// The open ones that reading changes although they are read: those that need the person, and those that are snoozed.
    pub(super) fn open_slots(&self) -> impl Iterator<Item = Slot> {
        let snoozed = self.index.snoozed.iter().map(|(_, slot)| *slot);
        self.index.needs_person.iter().copied().chain(snoozed)
    }
}
