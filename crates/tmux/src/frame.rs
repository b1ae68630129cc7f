//! What shows a ring in a window: its border styles, a line above its only pane, or a tint. The options are the person's, so
//! what was there before is kept in other options of the window, and comes back also with a later hub.

use crate::server::{TmuxError, TmuxServer};

/// How a window shows a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// By the border between its panes.
    Border,
    /// By a line above its only pane.
    Above,
    /// By the background of its only pane.
    Tint,
}

/// What makes a pane dark blue, behind a style of the person's.
const TINT: &str = ",bg=colour17";
/// What is changed in the window: each option with a `+` if the window had it of its own, and a `-` if it was the server's.
const OWN: &str = "@ringer_own";

/// An option that a frame changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameOption {
    name: &'static str,
    /// Where the person's own value is kept.
    kept: &'static str,
    change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The ring's style, where the pane rings.
    RingStyle,
    LineAbove,
    Tinted,
}

const BORDER: FrameOption =
    FrameOption { name: "pane-border-style", kept: "@ringer_border", change: Change::RingStyle };
const ACTIVE_BORDER: FrameOption = FrameOption {
    name: "pane-active-border-style",
    kept: "@ringer_active_border",
    change: Change::RingStyle,
};
const STATUS: FrameOption =
    FrameOption { name: "pane-border-status", kept: "@ringer_border_status", change: Change::LineAbove };
const STYLE: FrameOption =
    FrameOption { name: "window-style", kept: "@ringer_style", change: Change::Tinted };
const ACTIVE_STYLE: FrameOption =
    FrameOption { name: "window-active-style", kept: "@ringer_active_style", change: Change::Tinted };
const ALL: [FrameOption; 5] = [BORDER, ACTIVE_BORDER, STATUS, STYLE, ACTIVE_STYLE];

impl Frame {
    fn options(self) -> &'static [FrameOption] {
        match self {
            Self::Border => &[BORDER, ACTIVE_BORDER],
            Self::Above => &[BORDER, ACTIVE_BORDER, STATUS],
            Self::Tint => &[STYLE, ACTIVE_STYLE],
        }
    }
}

impl FrameOption {
    /// The value while it is Ringer's, if the person's own was this.
    fn value(self, before: &str) -> String {
        match self.change {
            // The person's own is expanded as tmux would do it.
            Change::RingStyle => format!("#{{?@ringer_ring,fg=blue#,bold,#{{E:{}}}}}", self.kept),
            Change::LineAbove => "top".to_owned(),
            Change::Tinted => format!("{before}{TINT}"),
        }
    }
}

/// The value that a window has of its own.
fn own_value(server: &TmuxServer, window: &str, name: &str) -> Result<String, TmuxError> {
    let value = server.run(&["show-options", "-wvq", "-t", window, name])?;
    Ok(value.trim_end_matches('\n').to_owned())
}

/// Changes the options of a window.
pub(crate) fn begin_frame(server: &TmuxServer, window: &str, frame: Frame) -> Result<(), TmuxError> {
    let mut own = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut add = |flags: &str, name: &str, value: &str| {
        words.extend(["set-option", flags, "-t", window, name, value, ";"].map(str::to_owned));
    };
    for option in frame.options() {
        let is_own = !own_value(server, window, option.name)?.is_empty();
        own.push(format!("{}{}", if is_own { '+' } else { '-' }, option.name));
        // tmux copies it: a value that is handed over would be read as words of a command.
        add("-wqF", option.kept, &format!("#{{{}}}", option.name));
        match option.change {
            Change::Tinted => add("-wqF", option.name, &option.value(&format!("#{{{}}}", option.name))),
            _ => add("-wq", option.name, &option.value("")),
        }
    }
    add("-wq", OWN, &own.join(" "));
    words.pop();
    server.run(&words).map(drop)
}

/// The options that are changed in a window, and whether each was the window's own: what [`OWN`] says. Programs may have set that, too.
fn changed_options(own: &str) -> impl Iterator<Item = (FrameOption, bool)> {
    own.split_whitespace().filter_map(|word| {
        let (sign, name) = word.split_at_checked(1)?;
        Some((ALL.into_iter().find(|option| option.name == name)?, sign == "+"))
    })
}

/// Restores the options of a window. One that was changed while it rang stays as it is.
pub(crate) fn end_frame(server: &TmuxServer, window: &str) -> Result<(), TmuxError> {
    let changed = own_value(server, window, OWN)?;
    for (option, is_own) in changed_options(&changed) {
        let before = own_value(server, window, option.kept)?;
        if own_value(server, window, option.name)? == option.value(&before) {
            if is_own {
                let kept = format!("#{{{}}}", option.kept);
                server.run(&["set-option", "-wqF", "-t", window, option.name, &kept])?;
            } else {
                server.run(&["set-option", "-wqu", "-t", window, option.name])?;
            }
        }
        server.run(&["set-option", "-wqu", "-t", window, option.kept])?;
    }
    server.run(&["set-option", "-wqu", "-t", window, OWN]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_window_says_of_its_options_may_be_anything() {
        let own = "ä ä+window-style +window-style -pane-border-status + pane-border-status";
        let changed: Vec<_> = changed_options(own).map(|(option, is_own)| (option.name, is_own)).collect();
        assert_eq!(changed, [("window-style", true), ("pane-border-status", false)]);
    }
}
