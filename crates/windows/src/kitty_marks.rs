//! The ring of a window of kitty: a mark in front of its title, which kitty can be asked for.

use std::collections::BTreeSet;

use ringer_core::message::SurfaceId;

use crate::kitties::Kitties;
use crate::kitty::KittyAddress;
use crate::looks::SeenIn;
use crate::marked_title::wanted_title;

/// Which surfaces ring, and which titles have to be looked at.
#[derive(Debug, Default)]
pub(crate) struct KittyMarks {
    ringing: BTreeSet<SurfaceId>,
    are_off: bool,
    /// Surfaces whose title may have to change.
    changed: BTreeSet<SurfaceId>,
    /// Kitties that listed their titles: programs set them without a mark.
    listed: BTreeSet<KittyAddress>,
}

impl KittyMarks {
    /// A ring goes on or off.
    pub(crate) fn ring(&mut self, surface: &SurfaceId, is_lit: bool) {
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

    /// A kitty has listed its windows.
    pub(crate) fn listed(&mut self, kitty: &KittyAddress) {
        self.listed.insert(kitty.clone());
    }

    /// Has the titles changed that are not as they have to be. These surfaces are open, and no others.
    pub(crate) fn show<'a>(
        &mut self,
        surfaces: impl Iterator<Item = (&'a SurfaceId, &'a SeenIn)>,
        kitties: &Kitties,
    ) {
        let (changed, listed) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.listed));
        let mut ringing = BTreeSet::new();
        for (id, seen_in) in surfaces {
            if self.ringing.contains(id) {
                ringing.insert(id.clone());
            }
            let SeenIn::Kitty { kitty, pid, .. } = seen_in else { continue };
            let is_marked = self.is_marked(id);
            let lost_mark = || {
                let title = kitties.title(kitty, *pid);
                listed.contains(kitty) && title.is_some_and(|title| wanted_title(title, true).is_some())
            };
            if (changed.contains(id) || (is_marked && lost_mark()))
                && let (Some(window), Some(worker)) = (kitties.window(kitty, *pid), kitties.worker(kitty))
            {
                worker.mark_title(window.id, is_marked);
            }
        }
        self.ringing = ringing;
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
}
