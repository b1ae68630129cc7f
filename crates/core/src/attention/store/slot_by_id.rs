//! A map from message ids to slots.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::ordered::Slot;
use crate::message::MessageId;

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

#[cfg(test)]
mod tests {
    use super::*;

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
