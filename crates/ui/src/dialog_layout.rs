//! The layout of a dialog on a screen: the lines below its text, and the room for the text itself.

use ringer_term::sanitise_line;

use crate::columns::wrap;
use crate::dialog::{Dialog, Phase};

/// A line below the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceLine {
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Choice,
    NotReady,
    Description,
    Hint,
    Good,
    Bad,
    Input,
}

/// Returns the lines below the text: the possible answers, a text field, or the outcome.
pub(crate) fn choice_lines(dialog: &Dialog, columns: usize) -> Vec<ChoiceLine> {
    let mut lines = Vec::new();
    let mut push = |text: &str, kind: LineKind| {
        let wrapped = wrap(text, columns);
        lines.extend(wrapped.into_iter().map(|text| ChoiceLine { text, kind }));
    };
    match dialog.phase() {
        Phase::Over { text, is_good, was_typing } => {
            push(&sanitise_line(text), if *is_good { LineKind::Good } else { LineKind::Bad });
            push(if *was_typing { "enter closes this" } else { "any key closes this" }, LineKind::Hint);
        }
        Phase::Sending => push("sent; waiting until the agent has taken it…", LineKind::Hint),
        Phase::Typing(_) => {
            push("> ", LineKind::Input);
            push("enter send   esc back", LineKind::Hint);
        }
        Phase::Choosing => {
            if let Some(why) = dialog.unanswerable_here() {
                push(&format!("It cannot be answered here: {why}"), LineKind::Bad);
            }
            let choices = dialog.choices();
            let waits = choices.iter().any(|choice| !choice.is_ready);
            for choice in choices {
                let mark = match choice.is_marked {
                    Some(true) => "[x] ",
                    Some(false) => "[ ] ",
                    None => "",
                };
                let kind = if choice.is_ready { LineKind::Choice } else { LineKind::NotReady };
                push(&format!("[{}] {mark}{}", choice.key, choice.label), kind);
                if !choice.description.is_empty() {
                    push(&format!("    {}", choice.description), LineKind::Description);
                }
            }
            let first = if waits {
                "space read on to allow   "
            } else if dialog.is_multiple_choice() {
                "enter send   "
            } else {
                ""
            };
            push("", LineKind::Hint);
            push(&format!("{first}g go there   esc later"), LineKind::Hint);
        }
    }
    lines
}

/// Minimum size of the screen, in columns and lines. On a smaller screen nothing is drawn.
pub(crate) const MIN_SIZE: (u16, u16) = (20, 5);
/// The number of lines for the frame of a dialog, its blank lines, and the footer.
const FRAME: usize = 5;
/// Maximum width of the text.
const MAX_COLUMNS: usize = 106;

/// The room for a dialog on a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DialogRoom {
    size: (u16, u16),
}

impl DialogRoom {
    pub(crate) fn on(size: (u16, u16)) -> Self {
        Self { size }
    }

    /// Returns the columns for the text.
    pub(crate) fn columns(self) -> usize {
        usize::from(self.size.0).saturating_sub(4).clamp(4, MAX_COLUMNS)
    }

    /// Returns the columns for typed text, without the prompt mark and the cursor.
    pub(crate) fn input_columns(self) -> usize {
        self.columns().saturating_sub(6)
    }

    /// Returns the lines for the text, with the choices below it.
    pub(crate) fn lines(self, dialog: &Dialog) -> usize {
        let choices = choice_lines(dialog, self.columns()).len();
        usize::from(self.size.1).saturating_sub(choices + FRAME).max(1)
    }

    /// Returns true if there is no room for all choices.
    pub(crate) fn is_too_low(self, dialog: &Dialog) -> bool {
        choice_lines(dialog, self.columns()).len() + FRAME >= usize::from(self.size.1)
    }

    /// Limits scrolling to the end of the text.
    pub(crate) fn limit_scroll(self, dialog: &mut Dialog) {
        let lines = dialog.lines(self.columns()).len();
        dialog.limit_scroll(lines, self.lines(dialog));
    }

    /// Records that the dialog is on the screen.
    pub(crate) fn mark_drawn(self, dialog: &mut Dialog) {
        let is_readable = self.size.0 >= MIN_SIZE.0 && self.size.1 >= MIN_SIZE.1 && !self.is_too_low(dialog);
        let lines = dialog.lines(self.columns()).len();
        dialog.mark_drawn(lines, self.lines(dialog), is_readable);
    }
}
