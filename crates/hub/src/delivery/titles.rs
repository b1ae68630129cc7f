//! Setting a mark in a title and taking it away: one try, which ends within a few seconds whatever the terminal does.
//!
//! A tmux pane: tmux itself puts the mark in front of the title and restores it, so no text of Ringer's is in it,
//! nothing is written to the program's terminal, and a title that the program has set meanwhile stays. Any other
//! terminal: the title is pushed on the terminal's own stack and popped again (`title_mark = "always"`).

use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_deliver::Error;
use ringer_term::{TITLE_RESTORE, Terminator, detect, title_mark};
use ringer_tmux::TmuxError;

use crate::delivery::terminals::{Terminal, has_utf8, write};
use crate::hosts::tmux::TmuxPane;

/// How long after a try that failed the next one comes: a terminal that was stopped with Ctrl-S stays so for seconds to
/// hours.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);
/// What the title says meanwhile where it cannot be read. No text of a message: the next message has another.
const TEXT: &str = "unread notification";
/// What pushes the title in front of that text. A terminal that took as much has the title on its stack.
const PUSH: &str = "\x1b[22;2t";

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TitleOutcome {
    /// The mark is there.
    Set,
    /// There is no mark: it was taken away, could not be set, or went with its terminal.
    Gone,
    /// It could not be taken away yet.
    NotYet,
}

/// One change of a title.
#[derive(Debug)]
pub(crate) struct TitleMarkChange {
    pub(crate) surface: SurfaceId,
    target: Target,
    set: bool,
}

#[derive(Debug)]
enum Target {
    Tmux(TmuxPane),
    Stack(Terminal),
}

impl TitleMarkChange {
    /// In a pane of tmux.
    pub(crate) fn in_tmux(surface: SurfaceId, pane: TmuxPane, set: bool) -> Self {
        Self { surface, target: Target::Tmux(pane), set }
    }

    /// On the title stack of a terminal.
    pub(crate) fn on_stack(terminal: Terminal, set: bool) -> Self {
        Self { surface: terminal.surface.clone(), target: Target::Stack(terminal), set }
    }

    /// Whether the mark is set, and not removed.
    pub(crate) fn is_set(&self) -> bool {
        self.set
    }

    /// Tries it.
    pub(crate) async fn carry_out(&self) -> TitleOutcome {
        match (&self.target, self.set) {
            (Target::Tmux(pane), true) => pane.mark().await,
            (Target::Tmux(pane), false) => pane.unmark().await,
            (Target::Stack(terminal), true) => push(terminal).await,
            (Target::Stack(terminal), false) => pop(terminal).await,
        }
    }
}

async fn push(terminal: &Terminal) -> TitleOutcome {
    let Ok((tty, environment)) = terminal.look().await else { return TitleOutcome::Gone };
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
    // A device that is not known any more has gone with its terminal.
    let Some(tty) = &terminal.tty else { return TitleOutcome::Gone };
    match write(&terminal.surface, tty, TITLE_RESTORE.as_bytes()).await {
        Err(Error::TerminalStopped { written: 0, .. }) => TitleOutcome::NotYet,
        // A terminal that has gone, or belongs to another session, has no mark of Ringer's.
        _ => TitleOutcome::Gone,
    }
}

impl TmuxPane {
    /// Puts the mark in front of the title. tmux keeps both, with the pane.
    async fn mark(&self) -> TitleOutcome {
        let pane = &self.pane;
        let commands = format!(
            "set-option -p -t '{pane}' -F @ringer_title '#{{pane_title}}' ; \
             set-option -p -t '{pane}' -F @ringer_marked '● #{{pane_title}}' ; \
             select-pane -t '{pane}' -T '#{{@ringer_marked}}'"
        );
        let unmarked = "#{!=:#{pane_title},#{@ringer_marked}}";
        match self.tell(unmarked, &commands).await {
            Ok(()) => TitleOutcome::Set,
            Err(_) => TitleOutcome::Gone,
        }
    }

    /// Brings the title back, unless the program has set another meanwhile.
    async fn unmark(&self) -> TitleOutcome {
        let pane = &self.pane;
        let commands = format!(
            "if-shell -F -t '{pane}' '#{{==:#{{pane_title}},#{{@ringer_marked}}}}' \
             \"select-pane -t '{pane}' -T '#{{@ringer_title}}'\" ; \
             set-option -p -u -t '{pane}' @ringer_title ; set-option -p -u -t '{pane}' @ringer_marked"
        );
        match self.tell("1", &commands).await {
            Err(TmuxError::TimedOut) => TitleOutcome::NotYet,
            // A pane or a server that has gone has no title.
            Ok(()) | Err(_) => TitleOutcome::Gone,
        }
    }

    /// Runs commands if the server is still the one that it was, and this holds of the pane.
    async fn tell(&self, condition: &str, commands: &str) -> Result<(), TmuxError> {
        let same = format!("#{{&&:#{{==:#{{pid}},{}}},{condition}}}", self.server);
        self.command(&["if-shell", "-F", "-t", &self.pane, &same, commands]).await.map(drop)
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
