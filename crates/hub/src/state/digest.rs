//! The digest: what came since the person went away.

use ringer_core::MessageId;
use ringer_core::attention::{Digest, Record, digest_id};
use serde_json::Value;

use super::HubState;
use crate::view;

impl HubState {
    /// The digest since a moment, or since the person last went away.
    pub(super) fn digest(&self, now_ms: i64, since_ms: Option<i64>) -> Value {
        let list = self.notifications.list();
        let away = self.notifications.engine().away_period();
        let since_ms = view::digest_since(since_ms, away, now_ms);
        let records = list.newest().filter(|record| Digest::includes(record, since_ms)).collect();
        view::digest(since_ms, records, |id| list.short_id(id), &self.clock)
    }

    /// The notification that is meant by the popup with this id: the digest's stands for the most urgent one.
    pub(super) fn meant_by_popup(&self, id: MessageId) -> MessageId {
        if id != digest_id() {
            return id;
        }
        let list = self.notifications.list();
        let first =
            list.newest_unread().chain(list.needs_person()).min_by(|one, two| Record::by_urgency(one, two));
        first.map_or(id, |record| record.id.clone())
    }
}
