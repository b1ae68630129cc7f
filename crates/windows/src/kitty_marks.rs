//! Shows the ring of a kitty window as a mark in front of its title.

use std::collections::BTreeSet;

use ringer_core::message::SurfaceId;

use crate::kitties::Kitties;
use crate::kitty::KittyAddress;
use crate::kitty_listing::wanted_title;
use crate::visibility::SurfaceWindow;

/// Tracks which surfaces ring and which titles carry a mark.
#[derive(Debug, Default)]
pub(crate) struct KittyMarks {
    ringing: BTreeSet<SurfaceId>,
    are_off: bool,
    /// Surfaces whose title may have to change.
    changed: BTreeSet<SurfaceId>,
    /// Surfaces that were marked, until kitty lists them without the mark. Other marks are left alone: `ringer run` and the hub
    /// set their own.
    marked: BTreeSet<SurfaceId>,
    /// Surfaces that have had a ring command.
    known: BTreeSet<SurfaceId>,
}

impl KittyMarks {
    /// Turns a ring on or off.
    pub(crate) fn ring(&mut self, surface: &SurfaceId, is_lit: bool) {
        if self.known.insert(surface.clone()) && !self.are_off {
            // A hub that was killed may have left a mark.
            self.marked.insert(surface.clone());
        }
        if is_lit {
            self.ringing.insert(surface.clone());
        } else {
            self.ringing.remove(surface);
        }
        self.changed.insert(surface.clone());
    }

    /// Turns title marks on or off.
    pub(crate) fn set_enabled(&mut self, are_on: bool) {
        self.are_off = !are_on;
        self.changed.extend(self.ringing.iter().cloned());
    }

    /// Sets the titles that are not as they should be. `surfaces` are all open ones; `has_listed` is true for kitties that were
    /// just listed.
    pub(crate) fn update<'a>(
        &mut self,
        surfaces: impl Iterator<Item = (&'a SurfaceId, &'a SurfaceWindow)>,
        kitties: &Kitties,
        has_listed: impl Fn(&KittyAddress) -> bool,
    ) {
        let changed = std::mem::take(&mut self.changed);
        let (mut ringing, mut marked, mut known) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (id, shown_in) in surfaces {
            if let SurfaceWindow::Kitty { kitty, pid, .. } = shown_in {
                let listed = kitties.title(kitty, *pid).filter(|_| has_listed(kitty));
                if let Some(is_marked) = self.wanted(id, changed.contains(id), listed)
                    && let (Some(window), Some(worker)) = (kitties.window(kitty, *pid), kitties.worker(kitty))
                {
                    worker.mark_title(window.id, is_marked);
                }
            }
            ringing.extend(self.ringing.take(id));
            marked.extend(self.marked.take(id));
            known.extend(self.known.take(id));
        }
        (self.ringing, self.marked, self.known) = (ringing, marked, known);
    }

    /// Returns whether to set the title with or without the mark; `None` to leave it. `listed` is the title in a new listing: a
    /// program may have set one without a mark, or kitty may have failed to set ours.
    fn wanted(&mut self, surface: &SurfaceId, has_changed: bool, listed: Option<&str>) -> Option<bool> {
        let is_marked = self.is_marked(surface);
        let is_wrong = listed.is_some_and(|title| wanted_title(title, is_marked).is_some());
        if is_marked {
            self.marked.insert(surface.clone());
        } else if listed.is_some() && !is_wrong {
            self.marked.remove(surface);
        }
        ((has_changed || is_wrong) && self.marked.contains(surface)).then_some(is_marked)
    }

    fn is_marked(&self, surface: &SurfaceId) -> bool {
        !self.are_off && self.ringing.contains(surface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rings_is_marked_unless_marks_are_switched_off() {
        let (mut marks, surface) = (KittyMarks::default(), SurfaceId::new("a"));
        assert!(!marks.is_marked(&surface));
        marks.ring(&surface, true);
        assert!(marks.is_marked(&surface));
        marks.set_enabled(false);
        assert!(!marks.is_marked(&surface));
        marks.set_enabled(true);
        marks.ring(&surface, false);
        assert!(!marks.is_marked(&surface));
    }

    #[test]
    fn a_mark_that_another_program_set_stays() {
        let (mut marks, surface) = (KittyMarks::default(), SurfaceId::new("a"));
        marks.ring(&surface, false);
        assert_eq!(marks.wanted(&surface, true, None), Some(false), "the hub before may have set it");
        assert_eq!(marks.wanted(&surface, false, Some("sh")), None);
        // `ringer run` shows the ring, and this host is told that it does not.
        marks.ring(&surface, false);
        assert_eq!(marks.wanted(&surface, true, Some("● sh")), None);
        let (mut marks, surface) = (KittyMarks::default(), SurfaceId::new("b"));
        marks.set_enabled(false);
        marks.ring(&surface, true);
        assert_eq!(marks.wanted(&surface, true, Some("● sh")), None);
    }

    #[test]
    fn a_title_is_set_again_until_kitty_lists_it_as_it_has_to_be() {
        let (mut marks, surface) = (KittyMarks::default(), SurfaceId::new("a"));
        assert_eq!(marks.wanted(&surface, false, Some("● own")), None, "its program set it");
        marks.ring(&surface, true);
        assert_eq!(marks.wanted(&surface, true, None), Some(true));
        assert_eq!(marks.wanted(&surface, false, Some("sh")), Some(true));
        assert_eq!(marks.wanted(&surface, false, Some("● sh")), None);
        marks.ring(&surface, false);
        assert_eq!(marks.wanted(&surface, true, None), Some(false));
        assert_eq!(marks.wanted(&surface, false, None), None);
        assert_eq!(marks.wanted(&surface, false, Some("● sh")), Some(false), "kitty did not answer");
        assert_eq!(marks.wanted(&surface, false, Some("sh")), None);
        assert_eq!(marks.wanted(&surface, false, Some("● sh")), None, "its program set it");
    }
}
