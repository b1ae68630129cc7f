//! Doubly linked lists through the entries of one arena, so that an entry is removed from any list without a search.

/// The index of an entry; `NONE` where there is none.
pub(crate) type Slot = u32;
pub(crate) const NONE: Slot = Slot::MAX;

/// The place of an entry in one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    previous: Slot,
    next: Slot,
}

impl Default for Link {
    fn default() -> Self {
        Self { previous: NONE, next: NONE }
    }
}

/// Something that has a link for each kind of list it may be in.
pub(crate) trait Linked<K: Copy> {
    fn link(&self, kind: K) -> Link;
    fn link_mut(&mut self, kind: K) -> &mut Link;
}

/// The ends of a list, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkedList {
    first: Slot,
    last: Slot,
    length: usize,
}

impl Default for LinkedList {
    fn default() -> Self {
        Self { first: NONE, last: NONE, length: 0 }
    }
}

impl LinkedList {
    pub(crate) fn first(self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }

    pub(crate) fn last(self) -> Option<Slot> {
        (self.last != NONE).then_some(self.last)
    }

    pub(crate) fn len(self) -> usize {
        self.length
    }

    pub(crate) fn push<K: Copy, E: Linked<K>>(&mut self, arena: &mut Arena<E>, slot: Slot, kind: K) {
        let previous = self.last;
        *arena.get_mut(slot).link_mut(kind) = Link { previous, next: NONE };
        if previous == NONE {
            self.first = slot;
        } else {
            arena.get_mut(previous).link_mut(kind).next = slot;
        }
        self.last = slot;
        self.length += 1;
    }

    pub(crate) fn unlink<K: Copy, E: Linked<K>>(&mut self, arena: &mut Arena<E>, slot: Slot, kind: K) {
        let Link { previous, next } = std::mem::take(arena.get_mut(slot).link_mut(kind));
        if previous == NONE {
            self.first = next;
        } else {
            arena.get_mut(previous).link_mut(kind).next = next;
        }
        if next == NONE {
            self.last = previous;
        } else {
            arena.get_mut(next).link_mut(kind).previous = previous;
        }
        self.length -= 1;
    }

    /// The entries from the last to the first.
    pub(crate) fn backwards<K: Copy, E: Linked<K>>(
        self,
        arena: &Arena<E>,
        kind: K,
    ) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.last(), move |slot| {
            let previous = arena.get(*slot).link(kind).previous;
            (previous != NONE).then_some(previous)
        })
    }
}

/// Entries that keep their index for life. Freed places are used again.
#[derive(Debug, Clone)]
pub(crate) struct Arena<E> {
    entries: Vec<E>,
    free: Vec<Slot>,
}

impl<E> Default for Arena<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<E: Default> Arena<E> {
    /// Puts an entry in. `None` when four thousand million are there already.
    pub(crate) fn insert(&mut self, entry: E) -> Option<Slot> {
        if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = entry;
            return Some(slot);
        }
        let slot = Slot::try_from(self.entries.len()).ok().filter(|slot| *slot != NONE)?;
        self.entries.push(entry);
        Some(slot)
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, slot: Slot) -> E {
        self.free.push(slot);
        std::mem::take(self.get_mut(slot))
    }
}

impl<E> Arena<E> {
    pub(crate) fn get(&self, slot: Slot) -> &E {
        &self.entries[slot as usize]
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut E {
        &mut self.entries[slot as usize]
    }
}
