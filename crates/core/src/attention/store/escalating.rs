//! Notifications that are to escalate while they are open.

use super::NotificationStore;
use crate::message::MessageId;

impl NotificationStore {
    /// When the next one escalates, in milliseconds since 1970.
    pub fn next_escalation(&self) -> Option<i64> {
        self.index.escalating.first().map(|(escalates_ms, _)| *escalates_ms)
    }

    /// Those that are to escalate by then, this many at most.
    pub(crate) fn due_escalations(&self, unix_ms: i64, most: usize) -> Vec<MessageId> {
        let due = self.index.escalating.iter().take_while(|(escalates_ms, _)| *escalates_ms <= unix_ms);
        self.ids(due.take(most).map(|(_, slot)| *slot))
    }

    /// Sets when one escalates, or that it does not. What is over does not in any case.
    pub(crate) fn set_escalation(&mut self, id: &MessageId, escalates_ms: Option<i64>) {
        let Some(slot) = self.slot_of(id) else { return };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let before = std::mem::replace(&mut entry.record.escalates_ms, escalates_ms.into());
        if let Some(before) = before.get() {
            self.index.escalating.remove(&(before, slot));
        }
        if let Some(escalates_ms) = escalates_ms.filter(|_| !entry.record.is_resolved) {
            self.index.escalating.insert((escalates_ms, slot));
        }
    }
}
