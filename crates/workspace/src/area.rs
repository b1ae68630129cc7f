//! Rectangles of cells.

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

    /// How many cells it has.
    pub(crate) fn cells(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// The column behind its last one.
    pub(crate) fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    /// The line below its last one.
    pub(crate) fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }

    pub(crate) fn contains(self, x: u16, y: u16) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }

    /// What is left inside of a border of one cell.
    pub(crate) fn inside(self) -> Self {
        Self::new(
            self.x.saturating_add(1),
            self.y.saturating_add(1),
            self.width.saturating_sub(2),
            self.height.saturating_sub(2),
        )
    }
}
