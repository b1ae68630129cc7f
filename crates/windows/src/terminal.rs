//! What the environment of a terminal's session says of its window.

use std::path::PathBuf;

use ringer_core::message::SurfaceId;
use ringer_journal::SessionLeader;
use ringer_term::Env;

use crate::display::{Display, DisplayError, TopLevel, WindowId};
use crate::display_name::DisplayName;
use crate::kitty::KittyAddress;

/// A terminal, and the window that it claims. A program may have changed the claim, or inherited it from another terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) tty: String,
    /// The process that the terminal started.
    pub(crate) leader: SessionLeader,
    pub(crate) display: Option<DisplayName>,
    pub(crate) window: Option<WindowId>,
    pub(crate) kitty: Option<KittyAddress>,
    pub(crate) is_kitty: bool,
    pub(crate) is_wayland: bool,
}

impl Terminal {
    /// The terminal of a surface, if it is a plain one that is still there. In a pane of tmux, tmux knows what is looked at.
    pub(crate) fn of(surface: &SurfaceId) -> Option<Self> {
        let tty = surface.tty()?.tty;
        let leader = SessionLeader::of(surface, tty).ok()?;
        let environment = Env::new(leader.variables().ok()?).led_by_child_of(leader.parent);
        (!environment.is_in_tmux()).then(|| Self::claimed(tty, leader, &environment))
    }

    fn claimed(tty: &str, leader: SessionLeader, environment: &Env) -> Self {
        let home = || Some(PathBuf::from(environment.get("HOME")?).join(".Xauthority"));
        let authority = environment.get("XAUTHORITY").map(PathBuf::from).or_else(home);
        let display = environment.get("DISPLAY").and_then(|display| DisplayName::parse(display, authority));
        let window = environment.get("WINDOWID").and_then(|window| window.parse().ok());
        Self {
            tty: tty.to_owned(),
            leader,
            display,
            window: window.filter(|window| *window != 0),
            kitty: environment.get("KITTY_LISTEN_ON").and_then(KittyAddress::parse),
            is_kitty: environment.get("KITTY_WINDOW_ID").is_some(),
            is_wayland: environment.get("WAYLAND_DISPLAY").is_some(),
        }
    }
}

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

    fn claimed(variables: &[(&str, &str)]) -> Terminal {
        let environment = Env::new(variables.iter().copied());
        Terminal::claimed("/dev/pts/1", SessionLeader { pid: 8, parent: 7 }, &environment)
    }

    #[test]
    fn the_environment_names_the_window() {
        let xterm = claimed(&[("DISPLAY", ":1"), ("WINDOWID", "4194316"), ("HOME", "/root-of-x")]);
        let display = DisplayName::parse(":1", Some("/root-of-x/.Xauthority".into()));
        assert_eq!((xterm.display, xterm.window, xterm.kitty), (display, Some(4_194_316), None));
        let kitty = claimed(&[("KITTY_LISTEN_ON", "unix:@k"), ("KITTY_WINDOW_ID", "1"), ("WINDOWID", "x")]);
        assert_eq!(kitty.kitty, KittyAddress::parse("unix:@k"));
        assert_eq!((kitty.display, kitty.window, kitty.is_kitty), (None, None, true));
        let ssh = claimed(&[("DISPLAY", "localhost:10.0"), ("XAUTHORITY", "/run/x"), ("WINDOWID", "0")]);
        assert_eq!((ssh.display, ssh.window), (None, None));
    }

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
