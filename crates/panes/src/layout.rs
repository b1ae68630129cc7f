//! The layout of a workspace: a tree of splits.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The minimum size of a pane beside others, with its border: ten columns and three lines, in which a prompt is readable.
const LEAST: LeastSize = LeastSize { width: 12, height: 5 };
/// Shares of the first part of a split, in thousandths.
const HALF: u16 = 500;
const WHOLE: u32 = 1000;

/// The id of a pane, which survives restarts of the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PaneId(Arc<str>);

impl PaneId {
    pub(crate) fn new(id: &str) -> Self {
        Self(id.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PaneId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The position of the second part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitDirection {
    /// To the right of the first part.
    Right,
    /// Below the first part.
    Down,
}

/// A side of a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
    Up,
    Down,
}

impl Side {
    fn direction(self) -> SplitDirection {
        match self {
            Self::Left | Self::Right => SplitDirection::Right,
            Self::Up | Self::Down => SplitDirection::Down,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Node {
    Pane(PaneId),
    Split { direction: SplitDirection, share: u16, first: Box<Node>, second: Box<Node> },
}

/// The minimum size of panes with their borders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeastSize {
    width: u16,
    height: u16,
}

impl LeastSize {
    /// The minimum size of a split with these two parts.
    fn with(self, other: Self, direction: SplitDirection) -> Self {
        match direction {
            SplitDirection::Right => {
                Self { width: self.width.saturating_add(other.width), height: self.height.max(other.height) }
            }
            SplitDirection::Down => {
                Self { width: self.width.max(other.width), height: self.height.saturating_add(other.height) }
            }
        }
    }

    fn along(self, direction: SplitDirection) -> u16 {
        match direction {
            SplitDirection::Right => self.width,
            SplitDirection::Down => self.height,
        }
    }
}

/// A border between two parts of a split that the mouse has grabbed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GrabbedBorder {
    /// The path from the root to the split. True leads to the second part.
    path: Vec<bool>,
    /// The mouse has grabbed the last cell of the first part, not the first cell of the second one.
    is_before: bool,
}

/// The layout of a workspace's panes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SavedLayout", into = "SavedLayout")]
pub(crate) struct Layout {
    root: Option<Node>,
}

/// The form of a layout in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum SavedLayout {
    /// A tree in preorder: each split is followed by its parts. As nested JSON, a deep tree would exceed the parser's limit.
    Parts(Vec<Part>),
    /// The form in the first version of the file.
    Tree(Option<Node>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Pane(PaneId),
    Split { direction: SplitDirection, share: u16 },
}

impl From<Layout> for SavedLayout {
    fn from(layout: Layout) -> Self {
        let mut parts = Vec::new();
        if let Some(root) = layout.root {
            root.into_parts(&mut parts);
        }
        Self::Parts(parts)
    }
}

impl From<SavedLayout> for Layout {
    fn from(saved: SavedLayout) -> Self {
        let root = match saved {
            SavedLayout::Parts(parts) => Node::from_parts(parts),
            SavedLayout::Tree(root) => root,
        };
        Self { root }
    }
}

impl Layout {
    /// The panes from the upper left to the lower right.
    pub(crate) fn panes(&self) -> Vec<PaneId> {
        let mut panes = Vec::new();
        if let Some(root) = &self.root {
            root.collect(&mut panes);
        }
        panes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(crate) fn contains(&self, pane: &PaneId) -> bool {
        self.root.as_ref().is_some_and(|root| root.contains(pane))
    }

    /// Splits a pane in half for a new one. Without `beside`, the whole layout is split.
    pub(crate) fn add(&mut self, pane: PaneId, beside: Option<&PaneId>, direction: SplitDirection) {
        let Some(root) = self.root.take() else {
            self.root = Some(Node::Pane(pane));
            return;
        };
        let beside = beside.filter(|beside| root.contains(beside));
        self.root = Some(match beside {
            Some(beside) => root.split(beside, &pane, direction),
            None => Node::halves(root, pane, direction),
        });
    }

    /// Removes a pane. The other part of its split gets the room.
    pub(crate) fn remove(&mut self, pane: &PaneId) {
        self.root = self.root.take().and_then(|root| root.without(pane));
    }

    /// Returns true if each pane has its minimum size. A single pane fits any room.
    pub(crate) fn fits(&self, room: Area) -> bool {
        self.enlarged(room) == room
    }

    /// The room, enlarged until all panes fit.
    fn enlarged(&self, room: Area) -> Area {
        match &self.root {
            Some(parts @ Node::Split { .. }) => {
                let least = parts.least();
                Area { width: room.width.max(least.width), height: room.height.max(least.height), ..room }
            }
            _ => room,
        }
    }

    /// The area of each pane, with its border. If the room is too small, these are the areas in the smallest room that is large
    /// enough.
    pub(crate) fn areas(&self, room: Area) -> Vec<(PaneId, Area)> {
        let mut areas = Vec::new();
        if let Some(root) = &self.root {
            root.areas(self.enlarged(room), &mut areas);
        }
        areas
    }

    /// The neighbour at a side of a pane: of those that touch it, the one that is level with its upper or left edge.
    pub(crate) fn neighbour(&self, pane: &PaneId, side: Side, room: Area) -> Option<PaneId> {
        let areas = self.areas(room);
        let own = areas.iter().find(|(id, _)| id == pane)?.1;
        let touches = |other: Area| match side {
            Side::Left => other.right() == own.x,
            Side::Right => other.x == own.right(),
            Side::Up => other.bottom() == own.y,
            Side::Down => other.y == own.bottom(),
        };
        let is_level = |other: Area| match side.direction() {
            SplitDirection::Right => (other.y..other.bottom()).contains(&own.y),
            SplitDirection::Down => (other.x..other.right()).contains(&own.x),
        };
        let overlaps = |other: Area| match side.direction() {
            SplitDirection::Right => other.y < own.bottom() && own.y < other.bottom(),
            SplitDirection::Down => other.x < own.right() && own.x < other.right(),
        };
        let beside = |test: &dyn Fn(Area) -> bool| {
            areas.iter().find(|(_, area)| touches(*area) && test(*area)).map(|(id, _)| id.clone())
        };
        beside(&is_level).or_else(|| beside(&overlaps))
    }

    /// Moves the nearest border of a pane towards a side by a number of cells.
    pub(crate) fn resize(&mut self, pane: &PaneId, side: Side, cells: u16, room: Area) {
        if let Some(root) = &mut self.root {
            root.resize(pane, side, cells, room);
        }
    }
}

impl Layout {
    /// The border between two panes at a cell.
    pub(crate) fn border_at(&self, x: u16, y: u16, room: Area) -> Option<GrabbedBorder> {
        let (mut node, mut room, mut path) = (self.root.as_ref()?, room, Vec::new());
        while let Node::Split { direction, share, first, second } = node {
            let (one, other) = divide(room, *direction, *share, (first, second));
            let (cell, start) = match direction {
                SplitDirection::Right => (x, other.x),
                SplitDirection::Down => (y, other.y),
            };
            if !other.is_empty() && room.contains(x, y) && (cell == start || cell + 1 == start) {
                return Some(GrabbedBorder { path, is_before: cell != start });
            }
            let is_second = other.contains(x, y);
            path.push(is_second);
            (node, room) = if is_second { (&**second, other) } else { (&**first, one) };
        }
        None
    }

    /// Moves a border to a cell, as far as there is room.
    pub(crate) fn move_border(&mut self, border: &GrabbedBorder, x: u16, y: u16, room: Area) {
        let (mut node, mut room) = (self.root.as_mut(), room);
        for is_second in &border.path {
            // The path may be outdated: panes may have been opened and closed while the button was held.
            let Some(Node::Split { direction, share, first, second }) = node else { return };
            let (one, other) = divide(room, *direction, *share, (first, second));
            (node, room) = if *is_second { (Some(&mut **second), other) } else { (Some(&mut **first), one) };
        }
        let Some(Node::Split { direction, share, first, second }) = node else { return };
        let (cell, start, whole) = match direction {
            SplitDirection::Right => (x, room.x, room.width),
            SplitDirection::Down => (y, room.y, room.height),
        };
        let wanted = cell.saturating_add(u16::from(border.is_before)).saturating_sub(start);
        *share = share_of(limited(wanted, whole, *direction, (first, second)), whole);
    }
}

impl Node {
    fn into_parts(self, parts: &mut Vec<Part>) {
        match self {
            Self::Pane(pane) => parts.push(Part::Pane(pane)),
            Self::Split { direction, share, first, second } => {
                parts.push(Part::Split { direction, share });
                first.into_parts(parts);
                second.into_parts(parts);
            }
        }
    }

    /// Builds a tree from preorder. Returns `None` if parts are missing. It goes backwards, so that the parts of a split are
    /// complete before it.
    fn from_parts(parts: Vec<Part>) -> Option<Self> {
        let mut nodes = Vec::new();
        for part in parts.into_iter().rev() {
            let node = match part {
                Part::Pane(pane) => Self::Pane(pane),
                Part::Split { direction, share } => {
                    let (first, second) = (Box::new(nodes.pop()?), Box::new(nodes.pop()?));
                    Self::Split { direction, share, first, second }
                }
            };
            nodes.push(node);
        }
        nodes.pop()
    }

    fn halves(first: Self, pane: PaneId, direction: SplitDirection) -> Self {
        Self::Split { direction, share: HALF, first: Box::new(first), second: Box::new(Self::Pane(pane)) }
    }

    fn collect(&self, panes: &mut Vec<PaneId>) {
        match self {
            Self::Pane(pane) => panes.push(pane.clone()),
            Self::Split { first, second, .. } => {
                first.collect(panes);
                second.collect(panes);
            }
        }
    }

    fn contains(&self, pane: &PaneId) -> bool {
        match self {
            Self::Pane(own) => own == pane,
            Self::Split { first, second, .. } => first.contains(pane) || second.contains(pane),
        }
    }

    fn split(self, beside: &PaneId, pane: &PaneId, direction: SplitDirection) -> Self {
        match self {
            Self::Pane(own) if own == *beside => Self::halves(Self::Pane(own), pane.clone(), direction),
            Self::Pane(own) => Self::Pane(own),
            Self::Split { direction: own, share, first, second } => Self::Split {
                direction: own,
                share,
                first: Box::new(first.split(beside, pane, direction)),
                second: Box::new(second.split(beside, pane, direction)),
            },
        }
    }

    fn without(self, pane: &PaneId) -> Option<Self> {
        match self {
            Self::Pane(own) => (own != *pane).then_some(Self::Pane(own)),
            Self::Split { direction, share, first, second } => {
                match (first.without(pane), second.without(pane)) {
                    (Some(first), Some(second)) => Some(Self::Split {
                        direction,
                        share,
                        first: Box::new(first),
                        second: Box::new(second),
                    }),
                    (one, other) => one.or(other),
                }
            }
        }
    }

    fn least(&self) -> LeastSize {
        match self {
            Self::Pane(_) => LEAST,
            Self::Split { direction, first, second, .. } => first.least().with(second.least(), *direction),
        }
    }

    fn areas(&self, room: Area, areas: &mut Vec<(PaneId, Area)>) {
        match self {
            Self::Pane(pane) => areas.push((pane.clone(), room)),
            Self::Split { direction, share, first, second } => {
                let (one, other) = divide(room, *direction, *share, (first, second));
                first.areas(one, areas);
                second.areas(other, areas);
            }
        }
    }

    /// Moves the border of the innermost split of that direction. Returns false if there is none.
    fn resize(&mut self, pane: &PaneId, side: Side, cells: u16, room: Area) -> bool {
        let Self::Split { direction, share, first, second } = self else { return false };
        let (one, other) = divide(room, *direction, *share, (first, second));
        let (is_first, is_second) = (first.contains(pane), second.contains(pane));
        if is_first && first.resize(pane, side, cells, one)
            || is_second && second.resize(pane, side, cells, other)
        {
            return true;
        }
        if !(is_first || is_second) || *direction != side.direction() {
            return false;
        }
        let (now, whole) = match direction {
            SplitDirection::Right => (one.width, room.width),
            SplitDirection::Down => (one.height, room.height),
        };
        let wanted = match side {
            Side::Left | Side::Up => now.saturating_sub(cells),
            Side::Right | Side::Down => now.saturating_add(cells),
        };
        *share = share_of(limited(wanted, whole, *direction, (first, second)), whole);
        true
    }
}

/// The areas of the two parts of a split.
fn divide(room: Area, direction: SplitDirection, share: u16, parts: (&Node, &Node)) -> (Area, Area) {
    let cells = |whole: u16| {
        let wanted = (u32::from(whole) * u32::from(share) + WHOLE / 2) / WHOLE;
        limited(u16::try_from(wanted).unwrap_or(whole), whole, direction, parts)
    };
    match direction {
        SplitDirection::Right => {
            let first = cells(room.width);
            (Area { width: first, ..room }, Area { x: room.x + first, width: room.width - first, ..room })
        }
        SplitDirection::Down => {
            let first = cells(room.height);
            (Area { height: first, ..room }, Area { y: room.y + first, height: room.height - first, ..room })
        }
    }
}

/// Limits the size of the first part so that both parts have their minimum size, if possible.
fn limited(wanted: u16, whole: u16, direction: SplitDirection, (first, second): (&Node, &Node)) -> u16 {
    let least = first.least().along(direction).min(whole);
    let most = whole.saturating_sub(second.least().along(direction)).max(least);
    wanted.clamp(least, most)
}

/// The share that gives the first part `cells` cells.
fn share_of(cells: u16, whole: u16) -> u16 {
    let share = (u32::from(cells) * WHOLE + u32::from(whole) / 2) / u32::from(whole.max(1));
    u16::try_from(share).unwrap_or(HALF)
}

/// A rectangle on the screen, in cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) width: u16,
    pub(crate) height: u16,
}

impl Area {
    pub(crate) const fn new(x: u16, y: u16, width: u16, height: u16) -> Self {
        Self { x, y, width, height }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    pub(crate) fn cell_count(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// The column after the last one.
    pub(crate) fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    /// The line after the last one.
    pub(crate) fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }

    pub(crate) fn contains(self, x: u16, y: u16) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }

    /// The area inside a border of one cell.
    pub(crate) fn inside(self) -> Self {
        Self::new(
            self.x.saturating_add(1),
            self.y.saturating_add(1),
            self.width.saturating_sub(2),
            self.height.saturating_sub(2),
        )
    }
}

#[cfg(test)]
mod tests;
