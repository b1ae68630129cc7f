//! Finds the window of a terminal by the environment of its session leader.

use std::path::PathBuf;

use ringer_core::message::SurfaceId;
use ringer_journal::SessionLeader;
use ringer_term::Env;

use crate::display::{Display, DisplayError, TopLevel, WindowId};
use crate::display_name::DisplayName;
use crate::kitty::KittyAddress;

/// A terminal and the window that its environment names. The variables may be inherited from another terminal, or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) tty: String,
    /// The session leader, which the terminal emulator started.
    pub(crate) leader: SessionLeader,
    pub(crate) display: Option<DisplayName>,
    pub(crate) window: Option<WindowId>,
    pub(crate) kitty: Option<KittyAddress>,
    pub(crate) is_kitty: bool,
    pub(crate) is_wayland: bool,
}

impl Terminal {
    /// The terminal of a surface, if it is a tty that still exists. A tmux pane is left to the tmux host.
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

/// Window classes of programs with one terminal per window. In other windows it is not known which tab is visible.
const SINGLE_TERMINAL_CLASSES: [&str; 6] = ["XTerm", "UXTerm", "URxvt", "Alacritty", "St", "st-256color"];

/// The top-level window of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalWindow {
    pub(crate) id: WindowId,
    pub(crate) class: String,
    /// The window shows only this terminal.
    pub(crate) is_alone: bool,
}

/// Why the window that a terminal names is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowMismatch {
    Closed,
    /// The variable was inherited from another terminal.
    Other,
}

impl TerminalWindow {
    pub(crate) fn find(
        display: &Display,
        terminal: &Terminal,
        window: WindowId,
    ) -> Result<Result<Self, WindowMismatch>, DisplayError> {
        let top_level = display.top_level(window)?;
        Ok(top_level
            .ok_or(WindowMismatch::Closed)
            .and_then(|top_level| Self::of(top_level, terminal.leader.parent)))
    }

    /// Accepts a window if it belongs to the process that started the session leader.
    fn of(top_level: TopLevel, starter: u32) -> Result<Self, WindowMismatch> {
        let TopLevel { id, pid, class } = top_level;
        if pid.is_some_and(|pid| pid != starter) {
            return Err(WindowMismatch::Other);
        }
        let is_alone = pid.is_some() && SINGLE_TERMINAL_CLASSES.contains(&class.as_str());
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
        assert_eq!(found(Some(71), "XTerm"), Err(WindowMismatch::Other));
    }
}
