//! How a ring shows where there is no border to draw it on.

/// How a ring shows in a window with one pane (`tmux.one_pane`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnePane {
    /// Not at all: the window list has its badge.
    #[default]
    None,
    /// The background of the pane is dark blue.
    Tint,
    /// The pane has a line with its title above it, which is a border.
    Border,
}
