//! A workspace: panes that are shown together.

use serde::{Deserialize, Serialize};

use crate::layout::{Area, GrabbedBorder, Layout, PaneId, Side, SplitDirection};

/// A cell is about twice as high as it is wide.
const LINE_HEIGHT: u32 = 2;
/// More columns than all panes of a workspace side by side need.
const MAX_ROOM: u16 = 16_384;

/// Panes that are shown together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Workspace {
    /// Its id for the hub.
    pub(crate) id: String,
    pub(crate) name: String,
    layout: Layout,
    focused: Option<PaneId>,
    #[serde(default)]
    is_zoomed: bool,
    /// How much is unread in it, as the hub counts.
    #[serde(skip)]
    pub(crate) unread: usize,
}

/// Where a pane was, for a session that was saved before it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PanePlace {
    /// The id of the workspace.
    pub(crate) workspace: String,
    /// Its name.
    pub(crate) name: String,
    /// Whether the pane had the keys of the workspace.
    pub(crate) has_keys: bool,
}

impl Workspace {
    pub(crate) fn new(id: String, name: String) -> Self {
        Self { id, name, layout: Layout::default(), focused: None, is_zoomed: false, unread: 0 }
    }

    pub(crate) fn panes(&self) -> Vec<PaneId> {
        self.layout.panes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    pub(crate) fn contains(&self, pane: &PaneId) -> bool {
        self.layout.contains(pane)
    }

    /// The pane that has the keys.
    pub(crate) fn focused(&self) -> Option<&PaneId> {
        self.focused.as_ref()
    }

    pub(crate) fn is_zoomed(&self) -> bool {
        self.is_zoomed
    }

    /// Adds a pane beside another one, or beside the one that has the keys, and gives it the keys.
    pub(crate) fn add(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        self.place(pane.clone(), beside, direction);
        self.focused = Some(pane);
        self.is_zoomed = false;
    }

    /// The same, but the keys stay where they are.
    pub(crate) fn add_behind(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        self.place(pane.clone(), beside, direction);
        self.focused.get_or_insert(pane);
    }

    /// Adds a pane in half of the largest one, along its longer side, and leaves the keys where they are. The pane that has them
    /// gives room only if it is the only one: the person works there.
    pub(crate) fn add_where_room_is(&mut self, pane: PaneId, mut room: Area) {
        // Where each has only the least that it needs, a larger window shows which one is the largest.
        while !self.layout.fits(room) && room.width < MAX_ROOM {
            room = Area::new(0, 0, room.width.max(1).saturating_mul(2), room.height.max(1).saturating_mul(2));
        }
        let mut areas = self.layout.areas(room);
        if areas.len() > 1 {
            areas.retain(|(own, _)| self.focused.as_ref() != Some(own));
        }
        // The first one of several that are equally large.
        let largest = areas.into_iter().rev().max_by_key(|(_, area)| area.cells());
        let is_wide = |area: Area| u32::from(area.width) >= LINE_HEIGHT * u32::from(area.height);
        let direction = match &largest {
            Some((_, area)) if !is_wide(*area) => SplitDirection::Down,
            _ => SplitDirection::Right,
        };
        self.add_behind(pane, largest.as_ref().map(|(own, _)| own), direction);
    }

    fn place(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        let beside = beside.filter(|beside| self.contains(beside)).or(self.focused.as_ref()).cloned();
        self.layout.add(pane, beside.as_ref(), direction);
    }

    pub(crate) fn remove(&mut self, pane: &PaneId) {
        let panes = self.panes();
        let next = panes.iter().position(|own| own == pane).map(|at| if at > 0 { at - 1 } else { 1 });
        self.layout.remove(pane);
        if self.focused.as_ref() == Some(pane) {
            self.focused = next.and_then(|at| panes.get(at)).cloned();
            self.is_zoomed = false;
        }
    }

    /// Gives a pane the keys. Gives whether it did not have them.
    pub(crate) fn focus(&mut self, pane: &PaneId) -> bool {
        if !self.contains(pane) || self.focused.as_ref() == Some(pane) {
            return false;
        }
        self.focused = Some(pane.clone());
        // Else the pane that has the keys would not be seen.
        self.is_zoomed = false;
        true
    }

    pub(crate) fn focus_side(&mut self, side: Side, room: Area) -> bool {
        let Some(focused) = &self.focused else { return false };
        match self.layout.neighbour(focused, side, room) {
            Some(next) => self.focus(&next),
            None => false,
        }
    }

    pub(crate) fn focus_next(&mut self) -> bool {
        let panes = self.panes();
        let at = panes.iter().position(|pane| Some(pane) == self.focused.as_ref()).map_or(0, |at| at + 1);
        match panes.get(at % panes.len().max(1)) {
            Some(next) => self.focus(&next.clone()),
            None => false,
        }
    }

    pub(crate) fn zoom(&mut self) {
        self.is_zoomed = !self.is_zoomed && self.panes().len() > 1;
    }

    /// Whether all panes can be seen at once.
    pub(crate) fn has_room(&self, room: Area) -> bool {
        self.layout.fits(room)
    }

    /// Whether only the pane that has the keys is seen: the person wants it, or there is no room for all.
    fn shows_one(&self, room: Area) -> bool {
        self.is_zoomed || !self.has_room(room)
    }

    /// Moves a border of the pane that has the keys.
    pub(crate) fn resize(&mut self, side: Side, cells: u16, room: Area) {
        if let Some(focused) = &self.focused {
            self.layout.resize(focused, side, cells, room);
        }
    }

    /// The border between two panes at a cell.
    pub(crate) fn border_at(&self, x: u16, y: u16, room: Area) -> Option<GrabbedBorder> {
        if self.shows_one(room) { None } else { self.layout.border_at(x, y, room) }
    }

    pub(crate) fn move_border(&mut self, border: &GrabbedBorder, x: u16, y: u16, room: Area) {
        if !self.shows_one(room) {
            self.layout.move_border(border, x, y, room);
        }
    }

    /// The panes that are seen, and where, with their borders. The one that has the keys is always seen.
    pub(crate) fn areas(&self, room: Area) -> Vec<(PaneId, Area)> {
        match &self.focused {
            Some(focused) if self.shows_one(room) => vec![(focused.clone(), room)],
            _ => self.layout.areas(room),
        }
    }

    /// Where each pane is, or would be if it were seen. Without room for all, each would be seen alone.
    pub(crate) fn all_areas(&self, room: Area) -> Vec<(PaneId, Area)> {
        let mut areas = self.layout.areas(room);
        let has_room = self.has_room(room);
        for (pane, area) in &mut areas {
            if !has_room || self.is_zoomed && self.focused.as_ref() == Some(pane) {
                *area = room;
            }
        }
        areas
    }

    /// Removes the panes that are not there any more.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&PaneId) -> bool) {
        for pane in self.panes().iter().filter(|pane| !is_kept(pane)) {
            self.remove(pane);
        }
        // A file may name any.
        if !self.focused.as_ref().is_some_and(|pane| self.contains(pane)) {
            self.focused = self.panes().into_iter().next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(name: &str) -> PaneId {
        PaneId::new(name)
    }

    #[test]
    fn the_keys_go_to_a_neighbour_when_a_pane_is_closed() {
        let mut workspace = Workspace::new("w".to_owned(), "work".to_owned());
        for name in ["a", "b", "c"] {
            workspace.add(pane(name), None, SplitDirection::Right);
        }
        assert_eq!(workspace.focused(), Some(&pane("c")));
        workspace.zoom();
        assert_eq!(workspace.areas(Area::new(0, 0, 90, 20)), [(pane("c"), Area::new(0, 0, 90, 20))]);
        workspace.remove(&pane("c"));
        assert_eq!((workspace.focused(), workspace.is_zoomed()), (Some(&pane("b")), false));
        workspace.focus(&pane("a"));
        workspace.remove(&pane("a"));
        assert_eq!(workspace.focused(), Some(&pane("b")));
        workspace.remove(&pane("b"));
        assert_eq!((workspace.focused(), workspace.is_empty()), (None, true));
    }

    #[test]
    fn the_next_pane_after_the_last_is_the_first() {
        let mut workspace = Workspace::new("w".to_owned(), "work".to_owned());
        workspace.add(pane("a"), None, SplitDirection::Right);
        workspace.add(pane("b"), None, SplitDirection::Down);
        assert!(workspace.focus_next());
        assert_eq!(workspace.focused(), Some(&pane("a")));
        assert!(workspace.focus_next());
        assert_eq!(workspace.focused(), Some(&pane("b")));
    }
}
