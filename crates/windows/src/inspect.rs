//! Checks for `ringer doctor` whether Ringer can see when the person looks at a terminal, and can bring it to the front.

use ringer_core::message::SurfaceId;

use crate::display::{ActiveWindow, Display};
use crate::kitty_listing::KittyWindow;
use crate::terminal::{Terminal, TerminalWindow, WindowMismatch};

/// The class of kitty's windows.
const KITTY: &str = "kitty";
const NO_SOCKET: &str = "its remote control is not on a socket";
const KITTY_FIX: &str = "in kitty.conf: allow_remote_control socket-only, and listen_on unix:/tmp/kitty-{kitty_pid}; then restart kitty";

/// The result of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowReport {
    /// The window: `XTerm window 0x40000c`.
    pub name: String,
    /// Ringer sees when the person looks at it.
    pub can_see: bool,
    /// Ringer can bring it to the front.
    pub can_focus: bool,
    /// Why one of these is false.
    pub why: Option<String>,
    /// What the person can do about it.
    pub fix: Option<String>,
}

impl WindowReport {
    fn without(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), can_see: false, can_focus: false, why: Some(why.into()), fix: None }
    }

    fn fix(self, fix: &str) -> Self {
        Self { fix: Some(fix.to_owned()), ..self }
    }
}

/// Checks the window of a terminal. `None` if it has none: over SSH, in a tmux pane, on a console.
pub fn inspect(surface: &SurfaceId) -> Option<WindowReport> {
    let terminal = Terminal::of(surface)?;
    if let Some(address) = &terminal.kitty {
        let why = match address.list() {
            Ok(listing) => match listing.led_by(terminal.leader.pid) {
                Some(window) => return Some(in_kitty(&terminal, window)),
                // Another terminal that was started from kitty has inherited the variable.
                None => None,
            },
            Err(error) => Some(format!("kitty at {address}: {error}")),
        };
        if let Some(why) = why {
            return Some(WindowReport::without("kitty", why).fix(KITTY_FIX));
        }
    }
    let found = terminal.window.map(|window| in_window(&terminal, window));
    let kitty = || {
        let is_silent = terminal.is_kitty && terminal.kitty.is_none();
        is_silent.then(|| WindowReport::without("kitty", NO_SOCKET).fix(KITTY_FIX))
    };
    let wayland = || {
        let why = "under Wayland only kitty tells Ringer of its windows";
        terminal.is_wayland.then(|| WindowReport::without("a window of Wayland", why))
    };
    found.flatten().or_else(kitty).or_else(wayland)
}

fn in_kitty(terminal: &Terminal, window: &KittyWindow) -> WindowReport {
    let active = terminal.display.as_ref().and_then(|name| Some(Display::connect(name).ok()?.active()));
    let is_followed = window.os_window.is_some() && matches!(active, Some(ActiveWindow::Known(_)));
    let why = if !is_followed {
        Some("no display of X11 tells when you leave it, so popups come while you look at it, too")
    } else if !window.has_own_title {
        Some("another of its windows has the same title, so Ringer does not see when you switch")
    } else {
        None
    };
    WindowReport {
        name: format!("kitty window {}", window.id),
        can_see: why.is_none(),
        can_focus: true,
        why: why.map(str::to_owned),
        fix: None,
    }
}

fn in_window(terminal: &Terminal, window: u32) -> Option<WindowReport> {
    let name = terminal.display.as_ref()?;
    let claimed = format!("window {window:#x} of display {name}");
    let result = Display::connect(name)
        .and_then(|display| Ok((TerminalWindow::find(&display, terminal, window)?, display.active())));
    Some(match result {
        Err(error) => WindowReport::without(claimed, error.to_string())
            .fix("check DISPLAY and XAUTHORITY, and open a new terminal"),
        Ok((Err(WindowMismatch::Closed), _)) => {
            WindowReport::without(claimed, "it was closed; WINDOWID is old")
        }
        Ok((Err(WindowMismatch::Other), _)) => {
            WindowReport::without(claimed, "it belongs to another terminal; WINDOWID was inherited from it")
        }
        Ok((Ok(found), active)) => {
            let has_manager = active != ActiveWindow::Unknown;
            let is_kitty = found.class == KITTY;
            let why = if !has_manager {
                Some("no window manager tells which window is active (_NET_ACTIVE_WINDOW)")
            } else if found.is_alone {
                None
            } else if is_kitty {
                Some(NO_SOCKET)
            } else {
                Some("it may have tabs, and Ringer does not see which one you look at")
            };
            let name = format!("{} window {:#x}", found.class, found.id);
            let (can_see, why) = (why.is_none(), why.map(str::to_owned));
            let fix = is_kitty.then(|| KITTY_FIX.to_owned());
            WindowReport { name, can_see, can_focus: has_manager, why, fix }
        }
    })
}
