//! The fence: a notification that arrived before its place was cleared is dropped, however late its hooks answer.

use std::collections::HashMap;

use crate::message::Place;

/// The period between two clearings, as a number that counts up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

/// How many cleared places are remembered. At the limit the list is emptied and everything that arrived earlier is dropped
/// at every place: dropping a late notification is safer than showing a cleared one.
const MAX_FENCES: usize = 1024;

/// Remembers when each place was cleared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fence {
    generation: Generation,
    /// The first generation that counts again, for each place that was cleared.
    raised: HashMap<Place, Generation>,
    /// The first generation that counts anywhere.
    floor: Generation,
}

impl Fence {
    /// The generation of what arrives now.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Clears a place: items of an earlier generation no longer count there. Returns the new generation.
    pub(crate) fn raise(&mut self, place: &Place) -> Generation {
        self.generation.0 += 1;
        if self.raised.len() >= MAX_FENCES {
            self.raised.clear();
            self.floor = self.generation;
        }
        self.raised.insert(place.clone(), self.generation);
        self.generation
    }

    /// Clears every place: items of an earlier generation no longer count anywhere.
    pub(crate) fn raise_everywhere(&mut self) {
        self.generation.0 += 1;
        self.raised.clear();
        self.floor = self.generation;
    }

    /// Whether something of a generation still counts at a place.
    pub(crate) fn admits(&self, place: &Place, generation: Generation) -> bool {
        let whole = Place::workspace(place.workspace.clone());
        let fenced = |place: &Place| self.raised.get(place).is_some_and(|raised| generation < *raised);
        generation >= self.floor && !fenced(place) && !fenced(&whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{SurfaceId, WorkspaceId};

    fn pane(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
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
