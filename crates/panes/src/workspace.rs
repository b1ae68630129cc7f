//! A workspace: panes that are shown together.

use serde::{Deserialize, Serialize};

use crate::layout::{Area, GrabbedBorder, Layout, PaneId, Side, SplitDirection};

/// A cell is about twice as high as it is wide.
const LINE_HEIGHT: u32 = 2;
/// More columns than all panes of a workspace side by side need.
const MAX_ROOM: u16 = 16_384;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Workspace {
    /// The id that the hub knows.
    pub(crate) id: String,
    pub(crate) name: String,
    layout: Layout,
    focused: Option<PaneId>,
    #[serde(default)]
    is_zoomed: bool,
    /// Unread notifications, as counted by the hub.
    #[serde(skip)]
    pub(crate) unread: usize,
}

/// The place of a pane that is newer than the saved session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PanePlace {
    pub(crate) workspace: String,
    pub(crate) name: String,
    /// The pane had the workspace's keyboard focus.
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

    /// The pane with the keyboard focus.
    pub(crate) fn focused(&self) -> Option<&PaneId> {
        self.focused.as_ref()
    }

    pub(crate) fn is_zoomed(&self) -> bool {
        self.is_zoomed
    }

    /// Adds a pane beside another one, or beside the focused one, and focuses it.
    pub(crate) fn add(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        self.place(pane.clone(), beside, direction);
        self.focused = Some(pane);
        self.is_zoomed = false;
    }

    /// Adds a pane like [`Self::add`], but does not change the focus.
    pub(crate) fn add_behind(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        self.place(pane.clone(), beside, direction);
        self.focused.get_or_insert(pane);
    }

    /// Adds a pane by splitting the largest one along its longer side, and does not change the focus. The focused pane is split
    /// only if it is the only one: the person works there.
    pub(crate) fn add_where_room_is(&mut self, pane: PaneId, mut room: Area) {
        // If every pane has its minimum size, a larger room shows which one is the largest.
        while !self.layout.fits(room) && room.width < MAX_ROOM {
            room = Area::new(0, 0, room.width.max(1).saturating_mul(2), room.height.max(1).saturating_mul(2));
        }
        let mut areas = self.layout.areas(room);
        if areas.len() > 1 {
            areas.retain(|(own, _)| self.focused.as_ref() != Some(own));
        }
        // `max_by_key` returns the last maximum, so the order is reversed to get the first one.
        let largest = areas.into_iter().rev().max_by_key(|(_, area)| area.cell_count());
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

    /// Focuses a pane. Returns true if the focus changed.
    pub(crate) fn focus(&mut self, pane: &PaneId) -> bool {
        if !self.contains(pane) || self.focused.as_ref() == Some(pane) {
            return false;
        }
        self.focused = Some(pane.clone());
        // Otherwise the focused pane would be hidden.
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

    /// Returns true if all panes fit at once.
    pub(crate) fn has_room(&self, room: Area) -> bool {
        self.layout.fits(room)
    }

    /// Returns true if only the focused pane is visible: it is zoomed, or there is no room for all.
    fn shows_one(&self, room: Area) -> bool {
        self.is_zoomed || !self.has_room(room)
    }

    /// Moves a border of the focused pane.
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

    /// The visible panes and their areas, borders included. The focused pane is always visible.
    pub(crate) fn areas(&self, room: Area) -> Vec<(PaneId, Area)> {
        match &self.focused {
            Some(focused) if self.shows_one(room) => vec![(focused.clone(), room)],
            _ => self.layout.areas(room),
        }
    }

    /// The area of each pane, visible or not. A pane that would only be visible alone has the whole room.
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

    /// Removes the panes that `is_kept` rejects.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&PaneId) -> bool) {
        for pane in self.panes().iter().filter(|pane| !is_kept(pane)) {
            self.remove(pane);
        }
        // A session file may name any pane as focused.
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
