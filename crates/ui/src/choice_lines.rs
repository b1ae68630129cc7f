//! What stands below the text of a dialog.

use ringer_term::sanitise_line;

use crate::columns::wrap;
use crate::dialog::{Dialog, Phase};

/// A line below the text, and whether it can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceLine {
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

/// What a line is.
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

/// What stands below the text: what can be chosen, or what became of it.
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
            if let Some(why) = dialog.only_there() {
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
            } else if dialog.takes_several() {
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
