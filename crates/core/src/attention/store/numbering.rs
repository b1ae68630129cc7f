//! The numbers of the orders in which records arrived and changed.

use super::NotificationStore;
use super::index::Index;
use super::ordered::{Number, Slot};

impl NotificationStore {
    pub(super) fn next_number(&mut self) -> Number {
        if self.last_number == Number::MAX {
            self.renumber();
        }
        self.last_number += 1;
        self.last_number
    }

    /// Numbers all records anew, in the same orders, after 4 billion changes. The only place that rebuilds the indexes.
    fn renumber(&mut self) {
        let mut slots: Vec<Slot> = self.index.everything.slots().collect();
        (self.index, self.last_number) = (Index::default(), 0);
        for (number, slot) in (1..).zip(&slots) {
            if let Some(entry) = self.slots[*slot as usize].as_mut() {
                entry.arrival = number;
                self.index.add(&entry.record, *slot, number);
            }
        }
        slots.sort_by_key(|slot| self.slots[*slot as usize].as_ref().map(|entry| entry.change));
        for (number, slot) in (1..).zip(&slots) {
            if let Some(entry) = self.slots[*slot as usize].as_mut() {
                entry.change = number;
                self.index.add_state(&entry.record, *slot, number);
                self.last_number = number;
            }
        }
    }
}
