//! Sets and removes the unread mark in a terminal's title. Each attempt ends within a few seconds, whatever the terminal does.
//!
//! In a tmux pane, the part that controls panes puts the mark in front of the title and restores it. The title then contains no
//! text of Ringer's, nothing is written to the program's terminal, and a title that the program has set meanwhile stays. In any
//! other terminal, the title is pushed on the terminal's own title stack and popped again (`title_mark = "always"`).

use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_deliver::Error;
use ringer_ipc::part::TitleOutcome;
use ringer_term::{TITLE_RESTORE, Terminator, detect, title_mark};

use crate::delivery::part_calls::PartCalls;
use crate::delivery::terminals::{Terminal, has_utf8, write};

/// Time between attempts. A terminal stopped with Ctrl-S stays stopped for seconds to hours.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The title while marked, where the old one cannot be read. It has no text of a message, since it stays for the next message
/// too.
const TEXT: &str = "unread notification";
/// Pushes the title. A terminal that accepted these bytes has the title on its stack.
const PUSH: &str = "\x1b[22;2t";

/// One change of a title.
#[derive(Debug)]
pub(crate) struct TitleMarkChange {
    pub(crate) surface: SurfaceId,
    target: Target,
    set: bool,
}

#[derive(Debug)]
enum Target {
    Pane,
    Stack(Terminal),
}

impl TitleMarkChange {
    /// Uses the part that controls panes.
    pub(crate) fn of_pane(surface: SurfaceId, set: bool) -> Self {
        Self { surface, target: Target::Pane, set }
    }

    /// Uses the title stack of a terminal.
    pub(crate) fn on_stack(terminal: Terminal, set: bool) -> Self {
        Self { surface: terminal.surface.clone(), target: Target::Stack(terminal), set }
    }

    /// Returns true if this change sets the mark, false if it removes it.
    pub(crate) fn is_set(&self) -> bool {
        self.set
    }

    pub(crate) async fn carry_out(&self, parts: &PartCalls) -> TitleOutcome {
        match (&self.target, self.set) {
            (Target::Pane, set) => parts.mark_title(self.surface.clone(), set).await,
            (Target::Stack(terminal), true) => push(terminal, parts).await,
            (Target::Stack(terminal), false) => pop(terminal).await,
        }
    }
}

async fn push(terminal: &Terminal, parts: &PartCalls) -> TitleOutcome {
    let Ok((tty, environment)) = terminal.look(parts).await else { return TitleOutcome::Gone };
    if !detect(&environment).restores_titles() {
        return TitleOutcome::Gone;
    }
    let sign = if has_utf8(&environment) { '●' } else { '*' };
    match write(&terminal.surface, &tty, title_mark(sign, TEXT, Terminator::St).as_bytes()).await {
        Ok(()) => TitleOutcome::Set,
        Err(Error::TerminalStopped { written, .. }) if written >= PUSH.len() => TitleOutcome::Set,
        Err(_) => TitleOutcome::Gone,
    }
}

async fn pop(terminal: &Terminal) -> TitleOutcome {
    // An unknown device has gone with its terminal.
    let Some(tty) = &terminal.tty else { return TitleOutcome::Gone };
    match write(&terminal.surface, tty, TITLE_RESTORE.as_bytes()).await {
        Err(Error::TerminalStopped { written: 0, .. }) => TitleOutcome::NotYet,
        // A terminal that is gone, or belongs to another session, has no mark.
        _ => TitleOutcome::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_begins_with_the_push() {
        assert!(title_mark('●', TEXT, Terminator::St).starts_with(PUSH));
    }
}
