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
    slots: VecDeque<(u64, Option<Slot>)>,
    len: usize,
}

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
        self.slots.iter().filter_map(|(_, slot)| *slot)
    }

    /// Adds a record at the end. Its number is larger than all before it.
    pub(super) fn push(&mut self, number: u64, slot: Slot) {
        self.slots.push_back((number, Some(slot)));
        self.len += 1;
    }

    /// Removes the record of a number, if it is there.
    pub(super) fn remove(&mut self, number: u64) {
        let Ok(at) = self.slots.binary_search_by_key(&number, |(own, _)| *own) else { return };
        if self.slots[at].1.take().is_none() {
            return;
        }
        self.len -= 1;
        while self.slots.front().is_some_and(|(_, slot)| slot.is_none()) {
            self.slots.pop_front();
        }
        while self.slots.back().is_some_and(|(_, slot)| slot.is_none()) {
            self.slots.pop_back();
        }
        if self.slots.len() > 2 * self.len {
            self.slots.retain(|(_, slot)| slot.is_some());
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
