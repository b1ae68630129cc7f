//! The indexes of the store: the records of each place, and the unread ones among them, each in its order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::ordered::{Number, Ordered, Slot};
use crate::attention::Record;
use crate::message::{Place, ShortIds, WorkspaceId};

/// The records of one workspace or one surface.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// By arrival.
    pub(super) all: Ordered,
    /// By change. For a surface, without the records in `stays_unread`.
    pub(super) unread: Ordered,
    /// For a surface, the open questions and permissions, by change. They are separate because a newer notification does not
    /// supersede them.
    pub(super) stays_unread: Ordered,
}

/// All indexes. Each change of a record removes its old state and adds the new one, so no index has to be rebuilt.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// By arrival.
    pub(super) everything: Ordered,
    /// The records of other machines, by arrival.
    pub(super) elsewhere: Ordered,
    /// The read and resolved records, in the order in which they became so.
    pub(super) read: Ordered,
    /// The unread records, in the order in which they became unread.
    pub(super) unread: Ordered,
    pub(super) workspaces: HashMap<WorkspaceId, Group>,
    pub(super) surfaces: HashMap<Place, Group>,
    /// The open records that need the person.
    pub(super) needs_person: BTreeSet<Slot>,
    /// The open records with each key.
    pub(super) keys: HashMap<Arc<str>, Vec<Slot>>,
    /// The open records that expire, by time.
    pub(super) expiring: BTreeSet<(i64, Slot)>,
    /// The snoozed records, by the end of the snooze.
    pub(super) snoozed: BTreeSet<(i64, Slot)>,
    /// The open records that escalate, by time.
    pub(super) escalating: BTreeSet<(i64, Slot)>,
    /// The records of each repository, by arrival.
    pub(super) scopes: HashMap<Arc<str>, Ordered>,
    /// The short ids of all records, by slot.
    pub(super) short_ids: ShortIds,
}

impl Index {
    pub(super) fn group(&self, place: &Place) -> Option<&Group> {
        if place.surface.is_some() { self.surfaces.get(place) } else { self.workspaces.get(&place.workspace) }
    }

    /// Adds a record without its state.
    pub(super) fn add(&mut self, record: &Record, slot: Slot, arrival: Number) {
        let place = &record.place;
        self.everything.push(arrival, slot);
        if record.machine.is_some() {
            self.elsewhere.push(arrival, slot);
        }
        self.short_ids.insert(&record.id, slot);
        self.scopes.entry(Arc::clone(&record.scope)).or_default().push(arrival, slot);
        self.workspaces.entry(place.workspace.clone()).or_default().all.push(arrival, slot);
        if place.surface.is_some() {
            self.surfaces.entry(place.clone()).or_default().all.push(arrival, slot);
        }
    }

    /// Removes a record without its state. A place with no records is removed.
    pub(super) fn remove(&mut self, record: &Record, slot: Slot, arrival: Number) {
        let place = &record.place;
        self.everything.remove(arrival);
        if record.machine.is_some() {
            self.elsewhere.remove(arrival);
        }
        self.short_ids.remove(&record.id, slot);
        if let Some(scope) = self.scopes.get_mut(&record.scope) {
            scope.remove(arrival);
            if scope.is_empty() {
                self.scopes.remove(&record.scope);
            }
        }
        if let Some(group) = self.workspaces.get_mut(&place.workspace) {
            group.all.remove(arrival);
            if group.all.is_empty() {
                self.workspaces.remove(&place.workspace);
            }
        }
        if let Some(group) = self.surfaces.get_mut(place) {
            group.all.remove(arrival);
            if group.all.is_empty() {
                self.surfaces.remove(place);
            }
        }
    }

    /// Adds the state of a record: read or unread, and what it is open for.
    pub(super) fn add_state(&mut self, record: &Record, slot: Slot, change: Number) {
        self.each_of_state(record, |ordered| {
            ordered.push(change, slot);
        });
        if record.is_resolved {
            return;
        }
        if record.needs_person() {
            self.needs_person.insert(slot);
        }
        if let Some(key) = &record.key {
            self.keys.entry(Arc::clone(key)).or_default().push(slot);
        }
        if let Some(expires_ms) = record.expires_ms.get() {
            self.expiring.insert((expires_ms, slot));
        }
        if let Some(until_ms) = record.snoozed_until.get() {
            self.snoozed.insert((until_ms, slot));
        }
        if let Some(escalates_ms) = record.escalates_ms.get() {
            self.escalating.insert((escalates_ms, slot));
        }
    }

    /// Removes the state of a record before it changes.
    pub(super) fn remove_state(&mut self, record: &Record, slot: Slot, change: Number) {
        self.each_of_state(record, |ordered| {
            ordered.remove(change);
        });
        self.needs_person.remove(&slot);
        if let Some(key) = &record.key
            && let Some(slots) = self.keys.get_mut(key)
        {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.keys.remove(key);
            }
        }
        if let Some(expires_ms) = record.expires_ms.get() {
            self.expiring.remove(&(expires_ms, slot));
        }
        if let Some(until_ms) = record.snoozed_until.get() {
            self.snoozed.remove(&(until_ms, slot));
        }
        if let Some(escalates_ms) = record.escalates_ms.get() {
            self.escalating.remove(&(escalates_ms, slot));
        }
    }

    /// Calls `action` with each ordered index that has the record because of its state.
    fn each_of_state(&mut self, record: &Record, mut action: impl FnMut(&mut Ordered)) {
        match (record.is_read, record.is_resolved) {
            (true, true) => return action(&mut self.read),
            (true, false) => return,
            (false, _) => {}
        }
        action(&mut self.unread);
        if let Some(group) = self.workspaces.get_mut(&record.place.workspace) {
            action(&mut group.unread);
        }
        if let Some(group) = self.surfaces.get_mut(&record.place) {
            action(if record.stays_unread() { &mut group.stays_unread } else { &mut group.unread });
        }
    }
}
