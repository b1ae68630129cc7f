//! The queue of messages that have arrived and are not decided yet. It keeps only the newest one of each surface and kind; a
//! prompt is neither replaced nor does it replace another message.
//!
//! This limits what is shown. The journal keeps every message.

use std::collections::{BTreeMap, HashMap};

use crate::message::{Place, ShownKind};

/// The most items that one drain takes, so that a burst does not block the hub's event loop.
pub(crate) const MAX_DRAIN: usize = 16;
/// The most queued items. At the limit the oldest is dropped and not shown; it stays in the journal.
pub(crate) const MAX_PENDING: usize = 4096;

/// Why an item was dropped from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// A newer one of the same surface and kind replaced it.
    ByNewer,
    /// The queue was full.
    QueueFull,
}

/// A queued item, with the generation in which it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival<T> {
    /// The place that will ring.
    pub place: Place,
    /// Its kind. `None` for a prompt.
    pub kind: Option<ShownKind>,
    /// The generation of the fence when the item arrived.
    pub generation: Generation,
    pub item: T,
}

/// The result of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DrainResult<T> {
    /// At most [`MAX_DRAIN`] items, in the order of arrival.
    pub arrivals: Vec<Arrival<T>>,
    /// True if more items are ready.
    pub more: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ArrivalQueue<T> {
    pending: BTreeMap<u64, Arrival<T>>,
    /// The entry of each generation, surface and kind.
    by_kind: HashMap<(Generation, Place, ShownKind), u64>,
    next: u64,
}

impl<T> Default for ArrivalQueue<T> {
    fn default() -> Self {
        Self { pending: BTreeMap::new(), by_kind: HashMap::new(), next: 0 }
    }
}

impl<T> ArrivalQueue<T> {
    /// Appends an item. The item of the same surface, kind and generation is removed from the queue and returned, or the oldest
    /// item if the queue is full. Without a surface or a kind nothing is replaced.
    pub(crate) fn push(
        &mut self,
        place: Place,
        kind: Option<ShownKind>,
        item: T,
        fence: &Fence,
    ) -> Option<(T, DropReason)> {
        let number = self.next;
        self.next += 1;
        let arrival = Arrival { place, kind, generation: fence.generation(), item };
        let replaced = coalescing_key(&arrival)
            .and_then(|key| self.by_kind.insert(key, number))
            .and_then(|older| self.pending.remove(&older));
        self.pending.insert(number, arrival);
        if self.pending.len() > MAX_PENDING
            && let Some((number, dropped)) = self.pending.pop_first()
        {
            self.unindex(number, &dropped);
            return Some((dropped.item, DropReason::QueueFull));
        }
        replaced.map(|arrival| (arrival.item, DropReason::ByNewer))
    }

    /// Removes and returns the next items that are ready. The others stay; a newer one of their surface may still replace
    /// them.
    pub(crate) fn drain(&mut self, mut ready: impl FnMut(&Arrival<T>) -> bool) -> DrainResult<T> {
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
            self.unindex(number, &arrival);
            Some(arrival)
        });
        DrainResult { arrivals: arrivals.collect(), more }
    }

    /// Returns the item that an item of this surface and kind would replace now.
    pub(crate) fn like(&self, place: &Place, kind: Option<ShownKind>, fence: &Fence) -> Option<&T> {
        let number = self.by_kind.get(&(fence.generation(), place.clone(), kind?))?;
        self.pending.get(number).map(|arrival| &arrival.item)
    }

    /// The queued items, in the order of arrival.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &T> {
        self.pending.values().map(|arrival| &arrival.item)
    }

    /// Removes the items of a place that are older than a generation. Returns them, for their trails.
    pub(crate) fn discard(&mut self, place: &Place, before: Generation) -> Vec<T> {
        let numbers: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, arrival)| place.covers(&arrival.place) && arrival.generation < before)
            .map(|(number, _)| *number)
            .collect();
        let discarded = numbers.into_iter().filter_map(|number| {
            let arrival = self.pending.remove(&number)?;
            self.unindex(number, &arrival);
            Some(arrival.item)
        });
        discarded.collect()
    }

    /// Removes the items that match.
    pub(crate) fn take(&mut self, matches: impl Fn(&T) -> bool) -> Vec<Arrival<T>> {
        let found = self.pending.iter().filter(|(_, arrival)| matches(&arrival.item));
        let numbers: Vec<u64> = found.map(|(number, _)| *number).collect();
        let taken = numbers.into_iter().filter_map(|number| {
            let arrival = self.pending.remove(&number)?;
            self.unindex(number, &arrival);
            Some(arrival)
        });
        taken.collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    fn unindex(&mut self, number: u64, arrival: &Arrival<T>) {
        if let Some(key) = coalescing_key(arrival)
            && self.by_kind.get(&key) == Some(&number)
        {
            self.by_kind.remove(&key);
        }
    }
}

/// The key of the items of which only the newest is kept. `None` for an item that stays.
fn coalescing_key<T>(arrival: &Arrival<T>) -> Option<(Generation, Place, ShownKind)> {
    arrival.place.surface.as_ref()?;
    Some((arrival.generation, arrival.place.clone(), arrival.kind?))
}

/// The number of a period between two clearings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

/// The most cleared places that are remembered. At the limit the list is emptied and everything that arrived earlier is
/// dropped at every place: dropping a late notification is safer than showing a cleared one.
const MAX_FENCES: usize = 1024;

/// Remembers when each place was cleared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fence {
    generation: Generation,
    /// For each cleared place, the first generation that is valid again.
    raised: HashMap<Place, Generation>,
    /// The first generation that is valid anywhere.
    floor: Generation,
}

impl Fence {
    /// The current generation.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Clears a place: items of earlier generations are no longer valid there. Returns the new generation.
    pub(crate) fn raise(&mut self, place: &Place) -> Generation {
        self.generation.0 += 1;
        if self.raised.len() >= MAX_FENCES {
            self.raised.clear();
            self.floor = self.generation;
        }
        self.raised.insert(place.clone(), self.generation);
        self.generation
    }

    /// Clears every place: items of earlier generations are no longer valid anywhere.
    pub(crate) fn raise_everywhere(&mut self) {
        self.generation.0 += 1;
        self.raised.clear();
        self.floor = self.generation;
    }

    /// Returns true if a generation is still valid at a place.
    pub(crate) fn admits(&self, place: &Place, generation: Generation) -> bool {
        let whole = Place::workspace(place.workspace.clone());
        let fenced = |place: &Place| self.raised.get(place).is_some_and(|raised| generation < *raised);
        generation >= self.floor && !fenced(place) && !fenced(&whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{SurfaceId, WorkspaceId};

    const STATUS: Option<ShownKind> = Some(ShownKind::Status);

    fn pane(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
    }

    fn whole() -> Place {
        Place::workspace(WorkspaceId::new("w"))
    }

    fn items(queue: &mut ArrivalQueue<u32>) -> Vec<u32> {
        queue.drain(|_| true).arrivals.into_iter().map(|arrival| arrival.item).collect()
    }

    #[test]
    fn the_newer_of_a_surface_goes_to_the_back() {
        let (mut queue, fence) = (ArrivalQueue::default(), Fence::default());
        assert_eq!(queue.push(pane("a"), STATUS, 1, &fence), None);
        queue.push(pane("b"), STATUS, 2, &fence);
        assert_eq!(queue.push(pane("a"), STATUS, 3, &fence), Some((1, DropReason::ByNewer)));
        assert_eq!(items(&mut queue), [2, 3]);
    }

    #[test]
    fn without_a_surface_nothing_coalesces() {
        let (mut queue, fence) = (ArrivalQueue::default(), Fence::default());
        for item in 1..=3 {
            queue.push(whole(), STATUS, item, &fence);
        }
        assert_eq!(items(&mut queue), [1, 2, 3]);
    }

    #[test]
    fn a_drain_takes_sixteen_and_asks_to_be_called_again() {
        let (mut queue, fence) = (ArrivalQueue::default(), Fence::default());
        for item in 0..20 {
            queue.push(whole(), STATUS, item, &fence);
        }
        let first = queue.drain(|_| true);
        assert_eq!((first.arrivals.len(), first.more), (MAX_DRAIN, true));
        let second = queue.drain(|_| true);
        assert_eq!((second.arrivals.len(), second.more), (4, false));
    }

    #[test]
    fn clearing_discards_what_came_before_and_nothing_that_comes_after() {
        let (mut queue, mut fence) = (ArrivalQueue::default(), Fence::default());
        queue.push(pane("a"), STATUS, 1, &fence);
        queue.push(pane("b"), STATUS, 2, &fence);
        queue.push(whole(), STATUS, 3, &fence);
        let generation = fence.raise(&pane("a"));
        assert_eq!(queue.discard(&pane("a"), generation), [1]);
        queue.push(pane("a"), STATUS, 4, &fence);
        let generation = fence.raise(&whole());
        assert_eq!(queue.discard(&whole(), generation), [2, 3, 4]);
        queue.push(pane("a"), STATUS, 5, &fence);
        assert_eq!(items(&mut queue), [5]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut queue, fence) = (ArrivalQueue::default(), Fence::default());
        for item in 0..10_000 {
            queue.push(pane(&item.to_string()), STATUS, item, &fence);
        }
        assert_eq!((queue.len(), queue.by_kind.len()), (MAX_PENDING, MAX_PENDING));
        assert!(matches!(queue.push(whole(), STATUS, 10_000, &fence), Some((_, DropReason::QueueFull))));
    }

    #[test]
    fn what_is_not_ready_waits_and_can_still_be_replaced() {
        let (mut queue, fence) = (ArrivalQueue::default(), Fence::default());
        queue.push(pane("a"), STATUS, 1, &fence);
        queue.push(pane("b"), STATUS, 2, &fence);
        let taken = queue.drain(|arrival| arrival.place != pane("a"));
        assert_eq!((taken.arrivals[0].item, taken.more), (2, false));
        assert_eq!(queue.push(pane("a"), STATUS, 3, &fence), Some((1, DropReason::ByNewer)));
        assert_eq!(items(&mut queue), [3]);
    }

    #[test]
    fn only_the_same_kind_is_replaced_and_a_prompt_never() {
        let (fence, mut queue) = (Fence::default(), ArrivalQueue::default());
        for (item, kind) in [(1, STATUS), (2, None), (3, Some(ShownKind::Complete)), (4, None)] {
            assert_eq!(queue.push(pane("a"), kind, item, &fence), None, "{item}");
        }
        assert_eq!(queue.push(pane("a"), STATUS, 5, &fence), Some((1, DropReason::ByNewer)));
        assert!(queue.pending().eq(&[2, 3, 4, 5]));
        assert_eq!(queue.take(|item| item % 2 == 0).len(), 2);
        assert!(queue.pending().eq(&[3, 5]));
    }

    proptest! {
        /// Coalescing never loses the newest item of a surface and kind, keeps the order of each surface, and nothing fenced comes out.
        #[test]
        fn the_newest_comes_out_and_nothing_fenced(steps in prop::collection::vec((0u8..5, 0usize..4), 0..120)) {
            let places = [pane("a"), pane("b"), pane("c"), whole()];
            let (mut queue, mut fence) = (ArrivalQueue::default(), Fence::default());
            let mut newest: HashMap<Place, u32> = HashMap::new();
            for (number, (step, place)) in (0u32..).zip(steps) {
                let place = &places[place];
                match step {
                    0..3 => {
                        queue.push(place.clone(), STATUS, number, &fence);
                        newest.insert(place.clone(), number);
                    }
                    3 => {
                        let generation = fence.raise(place);
                        queue.discard(place, generation);
                        newest.retain(|other, _| !place.covers(other));
                    }
                    _ => {
                        let mut last = HashMap::new();
                        for arrival in queue.drain(|_| true).arrivals {
                            prop_assert!(fence.admits(&arrival.place, arrival.generation));
                            let before = last.insert(arrival.place.clone(), arrival.item);
                            prop_assert!(before.is_none_or(|before| before < arrival.item));
                        }
                        if queue.len() == 0 {
                            for (place, number) in last {
                                prop_assert_eq!(newest.remove(&place), Some(number));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_late_answer_for_a_cleared_place_is_refused() {
        let mut fence = Fence::default();
        let before = fence.generation();
        assert!(fence.admits(&pane("a"), before));
        let after = fence.raise(&pane("a"));
        assert!(!fence.admits(&pane("a"), before), "cleared");
        assert!(fence.admits(&pane("b"), before), "another surface");
        assert!(fence.admits(&pane("a"), after), "what comes after");
    }

    #[test]
    fn clearing_a_workspace_fences_its_surfaces() {
        let mut fence = Fence::default();
        let before = fence.generation();
        fence.raise(&Place::workspace(WorkspaceId::new("w")));
        assert!(!fence.admits(&pane("a"), before));
        assert!(fence.admits(&Place::workspace(WorkspaceId::new("v")), before));
    }

    #[test]
    fn memory_is_bounded_on_the_safe_side() {
        let mut fence = Fence::default();
        let before = fence.generation();
        fence.raise(&pane("first"));
        for number in 0..10_000 {
            fence.raise(&pane(&number.to_string()));
        }
        assert!(fence.raised.len() <= MAX_FENCES);
        assert!(!fence.admits(&pane("first"), before), "forgotten fences still hold");
    }
}
