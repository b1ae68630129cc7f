//! The fence: what was cleared stays cleared, however late an answer about it comes.

use std::collections::HashMap;

use crate::surface::Place;

/// A stretch of time between two clearings, counted up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(u64);

/// Places of which a clearing is remembered one by one. One more, and everything before now is fenced off everywhere:
/// dropping too much of what is late is the safe side.
const MAX_FENCES: usize = 1024;

/// Remembers which place was cleared when.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    generation: Generation,
    /// The first generation that counts again, for each place that was cleared.
    raised: HashMap<Place, Generation>,
    /// The first generation that counts anywhere.
    floor: Generation,
}

impl Fence {
    /// The generation of what arrives now.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// A place is cleared: nothing of an earlier generation counts there any more. Gives the generation that begins.
    pub fn raise(&mut self, place: &Place) -> Generation {
        self.generation.0 += 1;
        if self.raised.len() >= MAX_FENCES {
            self.raised.clear();
            self.floor = self.generation;
        }
        self.raised.insert(place.clone(), self.generation);
        self.generation
    }

    /// Whether something of a generation still counts at a place.
    pub fn admits(&self, place: &Place, generation: Generation) -> bool {
        let whole = Place::workspace(place.workspace.clone());
        let fenced = |place: &Place| self.raised.get(place).is_some_and(|raised| generation < *raised);
        generation >= self.floor && !fenced(place) && !fenced(&whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{SurfaceId, WorkspaceId};

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
