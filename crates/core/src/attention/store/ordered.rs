//! A list of records in the order in which they were added. Any record can be removed.

use std::collections::VecDeque;

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
pub(super) struct Ordered {
    entries: VecDeque<(Number, Slot)>,
    len: usize,
}

/// Marks the position of a removed record. No record has this slot: that would need 4 billion records.
pub(super) const HOLE: Slot = Slot::MAX;

impl Ordered {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_sorted_map_is(steps in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let (mut ordered, mut expected) = (Ordered::default(), std::collections::BTreeMap::new());
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
}
