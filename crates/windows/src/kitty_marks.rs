//! The ring of a window of kitty: a mark in front of its title, which kitty can be asked for.

use std::collections::BTreeSet;

use ringer_core::message::SurfaceId;

use crate::kitties::Kitties;
use crate::kitty::KittyAddress;
use crate::kitty_listing::wanted_title;
use crate::looks::SeenIn;

/// Which surfaces ring, and which titles have to be changed.
#[derive(Debug, Default)]
pub(crate) struct KittyMarks {
    ringing: BTreeSet<SurfaceId>,
    are_off: bool,
    /// Surfaces whose title may have to change.
    changed: BTreeSet<SurfaceId>,
    /// Surfaces whose title was to be marked, until kitty lists it without the mark. Other marks are not touched: `ringer run` and
    /// the hub set their own.
    marked: BTreeSet<SurfaceId>,
    /// Surfaces that were heard of.
    known: BTreeSet<SurfaceId>,
}

impl KittyMarks {
    /// A ring goes on or off.
    pub(crate) fn ring(&mut self, surface: &SurfaceId, is_lit: bool) {
        if self.known.insert(surface.clone()) && !self.are_off {
            // A hub that was killed may have left its mark.
            self.marked.insert(surface.clone());
        }
        if is_lit {
            self.ringing.insert(surface.clone());
        } else {
            self.ringing.remove(surface);
        }
        self.changed.insert(surface.clone());
    }

    /// Titles are marked from now on, or not.
    pub(crate) fn switch(&mut self, are_on: bool) {
        self.are_off = !are_on;
        self.changed.extend(self.ringing.iter().cloned());
    }

    /// Has the titles changed that are not as they have to be. These surfaces are open, and no others. Some kitties have just
    /// listed their windows.
    pub(crate) fn show<'a>(
        &mut self,
        surfaces: impl Iterator<Item = (&'a SurfaceId, &'a SeenIn)>,
        kitties: &Kitties,
        has_listed: impl Fn(&KittyAddress) -> bool,
    ) {
        let changed = std::mem::take(&mut self.changed);
        let (mut ringing, mut marked, mut known) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (id, seen_in) in surfaces {
            if let SeenIn::Kitty { kitty, pid, .. } = seen_in {
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

    /// Whether a title has to be set, and then with the mark or without it. It may be known how it was listed: programs set titles
    /// without a mark, and kitty may not have done what it was asked to.
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

    /// Whether the title of a surface has to have a mark.
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
        marks.switch(false);
        assert!(!marks.is_marked(&surface));
        marks.switch(true);
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
        marks.switch(false);
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
