//! Records in the order in which they were added, from which any can be removed.

use std::collections::VecDeque;

/// Where the store keeps a record. Half as large as an id, of which every index would have one.
pub(super) type Slot = u32;
/// The place of a record in an order. 32 bits are half of what a count without end would take; the store numbers its records anew
/// before they overflow.
pub(super) type Number = u32;

/// A list of records by numbers that only grow, so that a binary search finds one. Removing a record leaves a hole. There are
/// never more holes than records, and never one at either end.
///
/// A `BTreeMap` would do the same, and moves the entries of several nodes to remove the oldest: with 100,000 entries that
/// made marking a notification as read cost 1.9 times what it costs with ten.
#[derive(Debug, Clone, Default)]
pub(super) struct Ordered {
    entries: VecDeque<(Number, Slot)>,
    len: usize,
}

/// In the place of a record that was removed. The store has no slot of this number: it would need 4 billion records.
pub(super) const HOLE: Slot = Slot::MAX;

impl Ordered {
    /// How many records there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The records, oldest first.
    pub(super) fn slots(&self) -> impl DoubleEndedIterator<Item = Slot> {
        self.entries.iter().map(|(_, slot)| *slot).filter(|slot| *slot != HOLE)
    }

    /// Adds a record at the end. Its number is larger than all before it.
    pub(super) fn push(&mut self, number: Number, slot: Slot) {
        self.entries.push_back((number, slot));
        self.len += 1;
    }

    /// Removes the record of a number, if it is there.
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
