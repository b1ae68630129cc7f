//! How much of a dialog fits on a screen.

use crate::choice_lines::choice_lines;
use crate::dialog::Dialog;

/// The smallest screen on which something is drawn.
pub(crate) const MIN_SIZE: (u16, u16) = (20, 5);
/// Lines of a dialog that are neither its text nor its choices, and the footer.
const FRAME: usize = 5;
/// The widest text of a dialog.
const MAX_COLUMNS: usize = 106;

/// The room that a screen of a size has for a dialog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DialogRoom {
    size: (u16, u16),
}

impl DialogRoom {
    pub(crate) fn on(size: (u16, u16)) -> Self {
        Self { size }
    }

    /// Columns for its text.
    pub(crate) fn columns(self) -> usize {
        usize::from(self.size.0).saturating_sub(4).clamp(4, MAX_COLUMNS)
    }

    /// Columns for what is typed in one line, with its mark and the cursor.
    pub(crate) fn input_columns(self) -> usize {
        self.columns().saturating_sub(6)
    }

    /// Lines for its text, with its choices below it.
    pub(crate) fn lines(self, dialog: &Dialog) -> usize {
        let choices = choice_lines(dialog, self.columns()).len();
        usize::from(self.size.1).saturating_sub(choices + FRAME).max(1)
    }

    /// Whether there is no room for all its choices.
    pub(crate) fn is_too_low(self, dialog: &Dialog) -> bool {
        choice_lines(dialog, self.columns()).len() + FRAME >= usize::from(self.size.1)
    }

    /// Scrolls it no further than to its end.
    pub(crate) fn limit_scroll(self, dialog: &mut Dialog) {
        let lines = dialog.lines(self.columns()).len();
        dialog.limit_scroll(lines, self.lines(dialog));
    }

    /// It is on the screen now.
    pub(crate) fn drawn(self, dialog: &mut Dialog) {
        let is_readable = self.size.0 >= MIN_SIZE.0 && self.size.1 >= MIN_SIZE.1 && !self.is_too_low(dialog);
        let lines = dialog.lines(self.columns()).len();
        dialog.drawn(lines, self.lines(dialog), is_readable);
    }
}
