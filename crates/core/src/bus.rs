//! The bus: what arrived and is not decided yet, with the newest of each surface only.
//!
//! Coalescing is about what is shown. The journal keeps every message.

use std::collections::{BTreeMap, HashMap};

use crate::fence::{Fence, Generation};
use crate::surface::Place;

/// Taken out at once, so that a burst does not hold the loop.
pub const MAX_DRAIN: usize = 16;
/// Entries that may wait. One more, and the oldest is dropped from what is shown; it stays in the journal.
pub const MAX_PENDING: usize = 4096;

/// Why something left the bus before it was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displaced {
    /// A newer one of the same surface took its place.
    ByNewer,
    /// Too many waited.
    ByMany,
}

/// Something on its way, with the generation in which it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival<T> {
    /// Where it will ring.
    pub place: Place,
    /// What it has to be compared with when it comes out at the other end.
    pub generation: Generation,
    /// What it is.
    pub item: T,
}

/// What was taken out, and whether there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained<T> {
    /// At most [`MAX_DRAIN`] of them, in the order of arrival.
    pub arrivals: Vec<Arrival<T>>,
    /// Call again.
    pub more: bool,
}

/// The bus.
///
/// ```
/// use ringer_core::{Bus, Fence, Place, SurfaceId, WorkspaceId};
///
/// let (mut bus, mut fence) = (Bus::default(), Fence::default());
/// let pane = Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"));
/// bus.push(pane.clone(), "first", &fence);
/// bus.push(pane.clone(), "second", &fence);
/// assert_eq!(bus.drain(|_| true).arrivals[0].item, "second");
///
/// bus.push(pane.clone(), "third", &fence);
/// bus.discard(&pane, fence.raise(&pane));
/// assert!(bus.drain(|_| true).arrivals.is_empty(), "a cleared notification never comes back");
/// ```
#[derive(Debug, Clone)]
pub struct Bus<T> {
    pending: BTreeMap<u64, Arrival<T>>,
    /// The pending entry of each surface in its generation.
    by_surface: HashMap<(Generation, Place), u64>,
    next: u64,
}

impl<T> Default for Bus<T> {
    fn default() -> Self {
        Self { pending: BTreeMap::new(), by_surface: HashMap::new(), next: 0 }
    }
}

impl<T> Bus<T> {
    /// Puts something in at the back. What waits for the same surface in the same generation is given back: the newer
    /// one takes its place, not its turn. Without a surface nothing is replaced.
    pub fn push(&mut self, place: Place, item: T, fence: &Fence) -> Option<(T, Displaced)> {
        let generation = fence.generation();
        let number = self.next;
        self.next += 1;
        let replaced = place
            .surface
            .is_some()
            .then(|| self.by_surface.insert((generation, place.clone()), number))
            .flatten()
            .and_then(|older| self.pending.remove(&older));
        self.pending.insert(number, Arrival { place, generation, item });
        if self.pending.len() > MAX_PENDING
            && let Some((number, dropped)) = self.pending.pop_first()
        {
            self.forget(number, &dropped);
            return Some((dropped.item, Displaced::ByMany));
        }
        replaced.map(|arrival| (arrival.item, Displaced::ByNewer))
    }

    /// Takes the next ones out that are ready. What is not waits on, and a newer one of its surface may still take its
    /// place.
    pub fn drain(&mut self, mut ready: impl FnMut(&Arrival<T>) -> bool) -> Drained<T> {
        let numbers: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, arrival)| ready(arrival))
            .map(|(number, _)| *number)
            .take(MAX_DRAIN + 1)
            .collect();
        let more = numbers.len() > MAX_DRAIN;
        let arrivals = numbers.into_iter().take(MAX_DRAIN).filter_map(|number| {
            let arrival = self.pending.remove(&number)?;
            self.forget(number, &arrival);
            Some(arrival)
        });
        Drained { arrivals: arrivals.collect(), more }
    }

    /// Where something waits.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.pending.values().map(|arrival| &arrival.place)
    }

    /// What waits, in the order of arrival.
    pub fn pending(&self) -> impl Iterator<Item = &T> {
        self.pending.values().map(|arrival| &arrival.item)
    }

    /// Throws away what waits for a place from before a generation. Gives it back, for its trail.
    pub fn discard(&mut self, place: &Place, before: Generation) -> Vec<T> {
        let numbers: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, arrival)| place.covers(&arrival.place) && arrival.generation < before)
            .map(|(number, _)| *number)
            .collect();
        let discarded = numbers.into_iter().filter_map(|number| {
            let arrival = self.pending.remove(&number)?;
            self.forget(number, &arrival);
            Some(arrival.item)
        });
        discarded.collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn forget(&mut self, number: u64, arrival: &Arrival<T>) {
        let key = (arrival.generation, arrival.place.clone());
        if self.by_surface.get(&key) == Some(&number) {
            self.by_surface.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{SurfaceId, WorkspaceId};
    use proptest::prelude::*;

    fn pane(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
    }

    fn whole() -> Place {
        Place::workspace(WorkspaceId::new("w"))
    }

    fn items(bus: &mut Bus<u32>) -> Vec<u32> {
        bus.drain(|_| true).arrivals.into_iter().map(|arrival| arrival.item).collect()
    }

    #[test]
    fn the_newer_of_a_surface_goes_to_the_back() {
        let (mut bus, fence) = (Bus::default(), Fence::default());
        assert_eq!(bus.push(pane("a"), 1, &fence), None);
        bus.push(pane("b"), 2, &fence);
        assert_eq!(bus.push(pane("a"), 3, &fence), Some((1, Displaced::ByNewer)));
        assert_eq!(items(&mut bus), [2, 3]);
    }

    #[test]
    fn without_a_surface_nothing_coalesces() {
        let (mut bus, fence) = (Bus::default(), Fence::default());
        for item in 1..=3 {
            bus.push(whole(), item, &fence);
        }
        assert_eq!(items(&mut bus), [1, 2, 3]);
    }

    #[test]
    fn a_drain_takes_sixteen_and_asks_to_be_called_again() {
        let (mut bus, fence) = (Bus::default(), Fence::default());
        for item in 0..20 {
            bus.push(whole(), item, &fence);
        }
        let first = bus.drain(|_| true);
        assert_eq!((first.arrivals.len(), first.more), (MAX_DRAIN, true));
        let second = bus.drain(|_| true);
        assert_eq!((second.arrivals.len(), second.more), (4, false));
    }

    #[test]
    fn clearing_discards_what_came_before_and_nothing_that_comes_after() {
        let (mut bus, mut fence) = (Bus::default(), Fence::default());
        bus.push(pane("a"), 1, &fence);
        bus.push(pane("b"), 2, &fence);
        bus.push(whole(), 3, &fence);
        let generation = fence.raise(&pane("a"));
        assert_eq!(bus.discard(&pane("a"), generation), [1]);
        bus.push(pane("a"), 4, &fence);
        let generation = fence.raise(&whole());
        assert_eq!(bus.discard(&whole(), generation), [2, 3, 4]);
        bus.push(pane("a"), 5, &fence);
        assert_eq!(items(&mut bus), [5]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut bus, fence) = (Bus::default(), Fence::default());
        for item in 0..10_000 {
            bus.push(pane(&item.to_string()), item, &fence);
        }
        assert_eq!((bus.len(), bus.by_surface.len()), (MAX_PENDING, MAX_PENDING));
        assert!(matches!(bus.push(whole(), 10_000, &fence), Some((_, Displaced::ByMany))));
    }

    #[test]
    fn what_is_not_ready_waits_and_can_still_be_replaced() {
        let (mut bus, fence) = (Bus::default(), Fence::default());
        bus.push(pane("a"), 1, &fence);
        bus.push(pane("b"), 2, &fence);
        let taken = bus.drain(|arrival| arrival.place != pane("a"));
        assert_eq!((taken.arrivals[0].item, taken.more), (2, false));
        assert_eq!(bus.push(pane("a"), 3, &fence), Some((1, Displaced::ByNewer)));
        assert_eq!(items(&mut bus), [3]);
    }

    proptest! {
        /// Coalescing never loses the newest of a surface, keeps the order of each, and nothing fenced comes out.
        #[test]
        fn the_newest_comes_out_and_nothing_fenced(steps in prop::collection::vec((0u8..5, 0usize..4), 0..120)) {
            let places = [pane("a"), pane("b"), pane("c"), whole()];
            let (mut bus, mut fence) = (Bus::default(), Fence::default());
            let mut newest: HashMap<Place, u32> = HashMap::new();
            for (number, (step, place)) in (0u32..).zip(steps) {
                let place = &places[place];
                match step {
                    0..3 => {
                        bus.push(place.clone(), number, &fence);
                        newest.insert(place.clone(), number);
                    }
                    3 => {
                        let generation = fence.raise(place);
                        bus.discard(place, generation);
                        newest.retain(|other, _| !place.covers(other));
                    }
                    _ => {
                        let mut last = HashMap::new();
                        for arrival in bus.drain(|_| true).arrivals {
                            prop_assert!(fence.admits(&arrival.place, arrival.generation));
                            let before = last.insert(arrival.place.clone(), arrival.item);
                            prop_assert!(before.is_none_or(|before| before < arrival.item));
                        }
                        if bus.is_empty() {
                            for (place, number) in last {
                                prop_assert_eq!(newest.remove(&place), Some(number));
                            }
                        }
                    }
                }
            }
        }
    }
}
