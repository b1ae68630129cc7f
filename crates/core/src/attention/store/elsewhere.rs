//! Notifications of other machines.

use super::NotificationStore;
use crate::attention::Record;
use crate::message::MessageId;

impl NotificationStore {
    /// Those that came from other machines, newest first.
    pub fn newest_elsewhere(&self) -> impl Iterator<Item = &Record> {
        self.index.elsewhere.slots().rev().filter_map(|slot| self.at(slot))
    }

    /// Changes the text of one.
    pub(crate) fn set_body(&mut self, id: &MessageId, body: &str) {
        if let Some(entry) = self.entry_mut(id) {
            entry.record.body = body.into();
        }
    }
}
