//! Shows a ring in a window by its border styles, a line above its only pane, or a tint. These are the person's options, so their
//! values are saved in user options (`@ringer_…`) of the window, from which a later hub can restore them, too.

use crate::server::{TmuxError, TmuxServer};

/// How a window shows a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The border between its panes.
    Border,
    /// A line above its only pane.
    Above,
    /// The background of its only pane.
    Tint,
}

/// Appended to the person's style: a dark blue background.
const TINT: &str = ",bg=colour17";
/// Lists the changed options of a window: with `+` if the window had a value itself, with `-` if it inherited the value.
const CHANGED: &str = "@ringer_own";

/// An option that a frame changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FrameOption {
    name: &'static str,
    /// The option with the saved value of the person.
    saved: &'static str,
    change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The style of the ring in panes that ring, else the person's style.
    RingStyle,
    LineAbove,
    Tint,
}

const BORDER: FrameOption =
    FrameOption { name: "pane-border-style", saved: "@ringer_border", change: Change::RingStyle };
const ACTIVE_BORDER: FrameOption = FrameOption {
    name: "pane-active-border-style",
    saved: "@ringer_active_border",
    change: Change::RingStyle,
};
const STATUS: FrameOption =
    FrameOption { name: "pane-border-status", saved: "@ringer_border_status", change: Change::LineAbove };
const STYLE: FrameOption = FrameOption { name: "window-style", saved: "@ringer_style", change: Change::Tint };
const ACTIVE_STYLE: FrameOption =
    FrameOption { name: "window-active-style", saved: "@ringer_active_style", change: Change::Tint };
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
    /// The value that Ringer sets, given the person's value.
    fn value(self, before: &str) -> String {
        match self.change {
            // `E:` expands formats in the person's style, as tmux would do.
            Change::RingStyle => format!("#{{?@ringer_ring,fg=blue#,bold,#{{E:{}}}}}", self.saved),
            Change::LineAbove => "top".to_owned(),
            Change::Tint => format!("{before}{TINT}"),
        }
    }
}

/// The value that is set in the window itself; empty if it is inherited.
fn own_value(server: &TmuxServer, window: &str, name: &str) -> Result<String, TmuxError> {
    let value = server.run(&["show-options", "-wvq", "-t", window, name])?;
    Ok(value.trim_end_matches('\n').to_owned())
}

/// Saves and changes the options of a window.
pub(crate) fn begin_frame(server: &TmuxServer, window: &str, frame: Frame) -> Result<(), TmuxError> {
    let mut own = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut add = |flags: &str, name: &str, value: &str| {
        words.extend(["set-option", flags, "-t", window, name, value, ";"].map(str::to_owned));
    };
    for option in frame.options() {
        let is_own = !own_value(server, window, option.name)?.is_empty();
        own.push(format!("{}{}", if is_own { '+' } else { '-' }, option.name));
        // tmux copies the value (`-F`): passed as an argument, it would be parsed as a command.
        add("-wqF", option.saved, &format!("#{{{}}}", option.name));
        match option.change {
            Change::Tint => add("-wqF", option.name, &option.value(&format!("#{{{}}}", option.name))),
            _ => add("-wq", option.name, &option.value("")),
        }
    }
    add("-wq", CHANGED, &own.join(" "));
    words.pop();
    server.run(&words).map(drop)
}

/// Parses [`CHANGED`]: the changed options, and whether each was set in the window itself. Any program may have written it.
fn changed_options(own: &str) -> impl Iterator<Item = (FrameOption, bool)> {
    own.split_whitespace().filter_map(|word| {
        let (sign, name) = word.split_at_checked(1)?;
        Some((ALL.into_iter().find(|option| option.name == name)?, sign == "+"))
    })
}

/// Restores the options of a window. An option that was changed meanwhile keeps its value.
pub(crate) fn end_frame(server: &TmuxServer, window: &str) -> Result<(), TmuxError> {
    let changed = own_value(server, window, CHANGED)?;
    for (option, is_own) in changed_options(&changed) {
        let before = own_value(server, window, option.saved)?;
        if own_value(server, window, option.name)? == option.value(&before) {
            if is_own {
                let saved = format!("#{{{}}}", option.saved);
                server.run(&["set-option", "-wqF", "-t", window, option.name, &saved])?;
            } else {
                server.run(&["set-option", "-wqu", "-t", window, option.name])?;
            }
        }
        server.run(&["set-option", "-wqu", "-t", window, option.saved])?;
    }
    server.run(&["set-option", "-wqu", "-t", window, CHANGED]).map(drop)
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
