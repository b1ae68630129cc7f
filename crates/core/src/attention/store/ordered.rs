//! Records in the order in which they were added, from which any can be removed.

use std::collections::VecDeque;

/// Where the store keeps a record. Half as large as an id, of which every index would have one.
pub(super) type Slot = u32;

/// A list of records by numbers that only grow, so that a binary search finds one. Removing a record leaves a hole. There are
/// never more holes than records, and never one at either end.
///
/// A `BTreeMap` would do the same, and moves the entries of several nodes to remove the oldest: with 100,000 entries that
/// made marking a notification as read cost 1.9 times what it costs with ten.
#[derive(Debug, Clone, Default)]
pub(super) struct Ordered {
    /// Beside `slots` and not in one list with it: a pair of both would be a third larger.
    numbers: VecDeque<u64>,
    slots: VecDeque<Slot>,
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
        self.slots.iter().copied().filter(|slot| *slot != HOLE)
    }

    /// Adds a record at the end. Its number is larger than all before it.
    pub(super) fn push(&mut self, number: u64, slot: Slot) {
        self.numbers.push_back(number);
        self.slots.push_back(slot);
        self.len += 1;
    }

    /// Removes the record of a number, if it is there.
    pub(super) fn remove(&mut self, number: u64) {
        let Ok(at) = self.numbers.binary_search(&number) else { return };
        if std::mem::replace(&mut self.slots[at], HOLE) == HOLE {
            return;
        }
        self.len -= 1;
        while self.slots.front() == Some(&HOLE) {
            self.slots.pop_front();
            self.numbers.pop_front();
        }
        while self.slots.back() == Some(&HOLE) {
            self.slots.pop_back();
            self.numbers.pop_back();
        }
        if self.slots.len() > 2 * self.len {
            let mut slots = self.slots.iter();
            self.numbers.retain(|_| slots.next() != Some(&HOLE));
            self.slots.retain(|slot| *slot != HOLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_sorted_map_is(steps in prop::collection::vec((any::<bool>(), 0u64..40), 0..200)) {
            let (mut ordered, mut expected) = (Ordered::default(), std::collections::BTreeMap::new());
            for (number, (is_added, which)) in (0..).zip(steps) {
                if is_added {
                    let slot = Slot::try_from(number).unwrap() + 7;
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
                prop_assert!(ordered.slots.len() <= 2 * ordered.len);
            }
        }
    }
}
