//! The indexes of the store: the records of each place, and the unread ones among them, each in its order; a map from ids to
//! records, and the texts that records share.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Arc;

use crate::attention::Record;
use crate::message::{MessageId, Place, ShortIds, SurfaceId, WorkspaceId};

/// The records of one workspace or one surface.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// All records, by arrival.
    pub(super) all: OrderedSlots,
    /// By change. For a surface, without the records in `stays_unread`.
    pub(super) unread: OrderedSlots,
    /// For a surface, the open questions and permissions, by change. They are separate because a newer notification does not
    /// supersede them.
    pub(super) stays_unread: OrderedSlots,
}

/// All indexes. Each change of a record removes its old state and adds the new one, so no index has to be rebuilt.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// All records, by arrival.
    pub(super) everything: OrderedSlots,
    /// The records of other machines, by arrival.
    pub(super) elsewhere: OrderedSlots,
    /// The read and resolved records, in the order in which they became so.
    pub(super) read: OrderedSlots,
    /// The unread records, in the order in which they became unread.
    pub(super) unread: OrderedSlots,
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
    pub(super) scopes: HashMap<Arc<str>, OrderedSlots>,
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
    fn each_of_state(&mut self, record: &Record, mut action: impl FnMut(&mut OrderedSlots)) {
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

/// The position of a record in the store. Smaller than an id, which every index would have to repeat.
pub(super) type Slot = u32;
/// The position of a record in an order. 32 bits take half the memory of 64; the store renumbers its records before they
/// overflow.
pub(super) type Number = u32;

/// A list of records with increasing numbers, so that a binary search finds one. Removing a record leaves a hole. There are
/// never more holes than records, and never one at either end.
///
/// A `BTreeMap` would do the same, but moves the entries of several nodes to remove the oldest: with 100,000 entries, marking
/// a notification read cost 1.9 times as much as with ten.
#[derive(Debug, Clone, Default)]
pub(super) struct OrderedSlots {
    entries: VecDeque<(Number, Slot)>,
    len: usize,
}

/// Marks the position of a removed record. No record has this slot: that would need 4 billion records.
pub(super) const HOLE: Slot = Slot::MAX;

impl OrderedSlots {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The records, oldest first.
    pub(super) fn slots(&self) -> impl DoubleEndedIterator<Item = Slot> {
        self.entries.iter().map(|(_, slot)| *slot).filter(|slot| *slot != HOLE)
    }

    /// Adds a record at the end. Its number must be larger than all others.
    pub(super) fn push(&mut self, number: Number, slot: Slot) {
        self.entries.push_back((number, slot));
        self.len += 1;
    }

    /// Removes the record with this number, if there is one.
    pub(super) fn remove(&mut self, number: Number) {
        let Ok(at) = self.entries.binary_search_by_key(&number, |(number, _)| *number) else { return };
        if std::mem::replace(&mut self.entries[at].1, HOLE) == HOLE {
            return;
        }
        self.len -= 1;
        let is_hole = |entry: Option<&(Number, Slot)>| entry.is_some_and(|(_, slot)| *slot == HOLE);
        while is_hole(self.entries.front()) {
            self.entries.pop_front();
        }
        while is_hole(self.entries.back()) {
            self.entries.pop_back();
        }
        if self.entries.len() > 2 * self.len {
            self.entries.retain(|(_, slot)| *slot != HOLE);
        }
    }
}

/// The slots, by a hash of the id. The id itself is only in the record, so a table that grows need not read 100,000 ids again.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotById {
    by_hash: HashMap<u64, Slot, BuildHasherDefault<KeyIsHash>>,
    hash: RandomState,
    /// The ids whose hash was already taken by another id.
    collisions: HashMap<MessageId, Slot>,
}

impl SlotById {
    pub(super) fn len(&self) -> usize {
        self.by_hash.len() + self.collisions.len()
    }

    /// Returns the slot of an id. `is_in` returns true if the record in a slot has that id.
    pub(super) fn get(&self, id: &MessageId, is_in: impl FnOnce(Slot) -> bool) -> Option<Slot> {
        let found = self.by_hash.get(&self.hash.hash_one(id)).copied().filter(|slot| is_in(*slot));
        found.or_else(|| self.collisions.get(id).copied())
    }

    /// Adds an id that is not in the map.
    pub(super) fn insert(&mut self, id: &MessageId, slot: Slot) {
        if *self.by_hash.entry(self.hash.hash_one(id)).or_insert(slot) != slot {
            self.collisions.insert(id.clone(), slot);
        }
    }

    /// Removes an id with this slot.
    pub(super) fn remove(&mut self, id: &MessageId, slot: Slot) {
        let hash = self.hash.hash_one(id);
        if self.by_hash.get(&hash) == Some(&slot) {
            self.by_hash.remove(&hash);
        } else {
            self.collisions.remove(id);
        }
    }
}

/// A hasher for keys that are already hashes.
#[derive(Debug, Clone, Default)]
struct KeyIsHash(u64);

impl Hasher for KeyIsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not called: the keys are numbers.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// The names in records: senders, repositories, places, categories. With 100,000 unread notifications from a few agents,
/// separate copies would take a fifth of the memory.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedTexts {
    /// The number of uses of each text.
    texts: HashMap<Arc<str>, usize>,
}

impl SharedTexts {
    /// Makes a record share the texts of other records.
    pub(super) fn share(&mut self, record: &mut Record) {
        record.sender = self.get(&record.sender);
        record.scope = self.get(&record.scope);
        record.category = record.category.take().map(|category| self.get(&category));
        record.machine = record.machine.take().map(|machine| self.get(&machine));
        record.place.workspace = WorkspaceId::from(self.get(record.place.workspace.as_str()));
        record.place.surface =
            record.place.surface.take().map(|surface| SurfaceId::from(self.get(surface.as_str())));
    }

    /// Releases the texts of a removed record. Texts that no other record has are forgotten.
    pub(super) fn release(&mut self, record: &Record) {
        let names = [
            Some(&*record.sender),
            Some(&*record.scope),
            record.category.as_deref(),
            record.machine.as_deref(),
        ];
        let places =
            [Some(record.place.workspace.as_str()), record.place.surface.as_ref().map(SurfaceId::as_str)];
        for text in names.into_iter().chain(places).flatten() {
            let Some(uses) = self.texts.get_mut(text) else { continue };
            *uses -= 1;
            if *uses == 0 {
                self.texts.remove(text);
            }
        }
    }

    fn get(&mut self, text: &str) -> Arc<str> {
        let known = self.texts.get_key_value(text).map(|(shared, _)| Arc::clone(shared));
        let shared = known.unwrap_or_else(|| text.into());
        *self.texts.entry(Arc::clone(&shared)).or_default() += 1;
        shared
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_a_sorted_map_is(steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let (mut ordered, mut expected) = (OrderedSlots::default(), std::collections::BTreeMap::new());
            for (number, (is_added, which)) in (0..).zip(steps) {
                if is_added {
                    let slot = number + 7;
                    ordered.push(number, slot);
                    expected.insert(number, slot);
                } else {
                    // Recent numbers and old ones, some of which are gone.
                    let number = if which % 2 == 0 { number.saturating_sub(which) } else { which };
                    ordered.remove(number);
                    expected.remove(&number);
                }
                prop_assert!(ordered.slots().eq(expected.values().copied()));
                prop_assert!(ordered.slots().rev().eq(expected.values().rev().copied()));
                prop_assert_eq!((ordered.len(), ordered.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert!(ordered.entries.len() <= 2 * ordered.len);
            }
        }
    }

    #[test]
    fn two_ids_of_one_hash_have_their_own_slots() {
        let [one, two] = ["one", "two"].map(|text| MessageId::parse(text).unwrap());
        let mut ids = SlotById::default();
        // A real collision is hard to find, so the hash of the second id is entered for the first.
        let hash = ids.hash.hash_one(&two);
        ids.by_hash.insert(hash, 1);
        ids.insert(&two, 2);
        let in_one = |id: &MessageId| *id == one;
        assert_eq!((ids.len(), ids.get(&two, |_| in_one(&two))), (2, Some(2)));
        ids.remove(&two, 2);
        assert_eq!((ids.len(), ids.get(&two, |_| in_one(&two))), (1, None));
        ids.insert(&two, 2);
        ids.by_hash.remove(&hash);
        assert_eq!(ids.get(&two, |_| true), Some(2), "also when the first is gone");
    }
}
