//! A newer notification of a surface supersedes the unread one before it.

use super::NotificationStore;
use crate::attention::{ReadReason, Record};
use crate::message::{Kind, MessageId, ShownKind};

impl NotificationStore {
    /// The unread one that superseded a notification, or would have if it had been unread.
    pub(crate) fn superseding(&self, older: &Record) -> Option<&MessageId> {
        let is_concerned = older.place.surface.is_some() && !older.stays_unread();
        let group = self.index.group(&older.place).filter(|_| is_concerned)?;
        let unread = group.unread.slots().chain(group.stays_unread.slots());
        let mut unread = unread.filter_map(|slot| self.at(slot));
        let is_newer = |newer: &Record| (newer.unix_ms, &newer.id) > (older.unix_ms, &older.id);
        Some(&unread.find(|newer| is_newer(newer) && !says_more(older, newer))?.id)
    }

    pub(super) fn supersede(&mut self, newer: &Record, unix_ms: i64) -> Vec<MessageId> {
        // What has no surface supersedes nothing.
        let surface = Some(&newer.place).filter(|place| place.surface.is_some());
        let Some(group) = surface.and_then(|place| self.index.group(place)) else { return Vec::new() };
        let slots = group.unread.slots();
        let ids = self.ids(slots.filter(|slot| self.at(*slot).is_some_and(|older| !says_more(older, newer))));
        self.mark_these_read(ids, unix_ms, &ReadReason::Newer(newer.id.clone()))
    }
}

/// That an agent has been waiting since its turn ended says less than how the turn ended.
fn says_more(older: &Record, newer: &Record) -> bool {
    newer.shown_kind() == ShownKind::Idle && older.kind == Kind::Complete && older.sender == newer.sender
}
