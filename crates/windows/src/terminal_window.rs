//! The window of X11 that a terminal names, if it is the terminal's own.

use crate::display::{Display, DisplayError, TopLevel, WindowId};
use crate::terminal::Terminal;

/// The programs, by the class of their windows, that have one terminal in each window. In others it is not known which of
/// their tabs is seen.
const ONE_IN_EACH_WINDOW: [&str; 6] = ["XTerm", "UXTerm", "URxvt", "Alacritty", "St", "st-256color"];

/// The top-level window of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalWindow {
    pub(crate) id: WindowId,
    pub(crate) class: String,
    /// Whether no other terminal can be seen in it.
    pub(crate) is_alone: bool,
}

/// Why the window that a terminal names is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOwn {
    Closed,
    /// The variable is inherited by terminals of other programs, which have other windows.
    Other,
}

impl TerminalWindow {
    pub(crate) fn find(
        display: &Display,
        terminal: &Terminal,
        window: WindowId,
    ) -> Result<Result<Self, NotOwn>, DisplayError> {
        let top_level = display.top_level(window)?;
        Ok(top_level.ok_or(NotOwn::Closed).and_then(|top_level| Self::of(top_level, terminal.leader.parent)))
    }

    /// The top-level window of a terminal whose session's leader this process started.
    fn of(top_level: TopLevel, starter: u32) -> Result<Self, NotOwn> {
        let TopLevel { id, pid, class } = top_level;
        if pid.is_some_and(|pid| pid != starter) {
            return Err(NotOwn::Other);
        }
        let is_alone = pid.is_some() && ONE_IN_EACH_WINDOW.contains(&class.as_str());
        Ok(Self { id, class, is_alone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_another_process_is_not_used() {
        let found = |pid, class: &str| {
            let class = class.to_owned();
            TerminalWindow::of(TopLevel { id: 7, pid, class }, 70).map(|window| window.is_alone)
        };
        assert_eq!(found(Some(70), "XTerm"), Ok(true));
        assert_eq!(found(Some(70), "konsole"), Ok(false), "it has tabs");
        assert_eq!(found(None, "XTerm"), Ok(false), "it may be that of another terminal");
        assert_eq!(found(Some(71), "XTerm"), Err(NotOwn::Other));
    }
}
