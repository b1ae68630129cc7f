//! The delivery plan: which ways out a notification takes, and which comes next when one fails.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::Effects;

/// Where the person is looking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Focus {
    /// At the application.
    pub app: bool,
    /// At that workspace.
    pub workspace: bool,
    /// At that very surface.
    pub surface: bool,
}

impl Focus {
    /// Whether the person is looking at the pane that rings.
    pub fn is_on_it(self) -> bool {
        self.app && self.workspace && self.surface
    }
}

/// How popups are wanted (`notify.popup`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Popup {
    /// The desktop, and where that does not answer the terminal.
    #[default]
    Auto,
    /// The desktop only.
    Desktop,
    /// The terminal only.
    Terminal,
    /// Both.
    Both,
    /// None.
    Off,
}

/// A way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A desktop notification.
    Desktop,
    /// The terminal's own.
    Terminal,
    /// A sound.
    Sound,
    /// The person's commands.
    Command,
    /// Webhooks.
    Webhook,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Desktop, Self::Terminal, Self::Sound, Self::Command, Self::Webhook];

    /// The word used in the trail and in what is written down.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Terminal => "terminal",
            Self::Sound => "sound",
            Self::Command => "command",
            Self::Webhook => "webhook",
        }
    }

    /// The way of that name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == word)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What to perform. Each inner list is one purpose: the first way that works is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a list of things to do or not to do")]
pub struct Plan {
    /// In order.
    pub purposes: Vec<Vec<Way>>,
    /// Whether it is remembered.
    pub record: bool,
    /// Whether it is remembered as unread, and rings.
    pub unread: bool,
    /// Whether its pane flashes.
    pub flash: bool,
    /// Whether the ring shows for a moment although the person sees it.
    pub glow: bool,
    /// Whether its workspace moves up.
    pub reorder: bool,
    /// In words, for the trail.
    pub why: Vec<String>,
}

/// Plans a notification's way out.
///
/// ```
/// use ringer_core::{plan, Effects, Focus, Popup, Way};
///
/// let away = plan(Effects::default(), Focus::default(), Popup::Auto, true);
/// assert_eq!(away.purposes[0], [Way::Desktop, Way::Terminal]);
///
/// let looking = plan(Effects::default(), Focus { app: true, workspace: true, surface: true }, Popup::Auto, true);
/// assert_eq!(looking.purposes, [[Way::Command]]);
/// assert!(looking.glow && looking.record && !looking.unread);
/// ```
pub fn plan(effects: Effects, focus: Focus, popup: Popup, reordering: bool) -> Plan {
    let seen = focus.is_on_it();
    let mut plan = Plan {
        record: effects.record,
        unread: effects.record && effects.mark_unread && !seen,
        flash: effects.pane_flash,
        glow: effects.record && effects.mark_unread && seen,
        reorder: effects.reorder_workspace && reordering,
        ..Plan::default()
    };
    if seen {
        plan.why
            .push("the person is looking at it: recorded as read, no popup, no sound, no webhook".to_owned());
    }
    if effects.desktop && !seen {
        plan.purposes.extend(popups(popup).iter().map(|ways| ways.to_vec()));
    }
    if effects.sound && !seen {
        plan.purposes.push(vec![Way::Sound]);
    }
    if effects.command {
        plan.purposes.push(vec![Way::Command]);
        if !seen {
            plan.purposes.push(vec![Way::Webhook]);
        }
    }
    plan
}

/// One popup for a notification: two would be one too many, unless the person wants both.
fn popups(popup: Popup) -> &'static [&'static [Way]] {
    match popup {
        Popup::Auto => &[&[Way::Desktop, Way::Terminal]],
        Popup::Desktop => &[&[Way::Desktop]],
        Popup::Terminal => &[&[Way::Terminal]],
        Popup::Both => &[&[Way::Desktop], &[Way::Terminal]],
        Popup::Off => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKING: Focus = Focus { app: true, workspace: true, surface: true };

    #[test]
    fn only_the_very_pane_in_view_is_suppressed() {
        for focus in [
            Focus { app: false, ..LOOKING },
            Focus { workspace: false, ..LOOKING },
            Focus { surface: false, ..LOOKING },
        ] {
            let plan = plan(Effects::default(), focus, Popup::Auto, false);
            assert!(plan.unread && !plan.glow && plan.purposes.len() == 4, "{focus:?}");
        }
        assert!(!plan(Effects::default(), LOOKING, Popup::Auto, false).unread);
    }

    #[test]
    fn one_popup_unless_the_person_wants_both() {
        let ways = |popup| {
            let effects = Effects { desktop: true, record: true, ..Effects::NONE };
            plan(effects, Focus::default(), popup, false).purposes
        };
        assert_eq!(ways(Popup::Auto), [vec![Way::Desktop, Way::Terminal]]);
        assert_eq!(ways(Popup::Desktop), [[Way::Desktop]]);
        assert_eq!(ways(Popup::Terminal), [[Way::Terminal]]);
        assert_eq!(ways(Popup::Both), [[Way::Desktop], [Way::Terminal]]);
        assert!(ways(Popup::Off).is_empty());
    }

    #[test]
    fn each_switch_turns_off_its_own() {
        let all = Effects::default();
        let ways = |effects| plan(effects, Focus::default(), Popup::Auto, true).purposes.concat();
        assert!(!ways(Effects { desktop: false, ..all }).contains(&Way::Terminal));
        assert!(!ways(Effects { sound: false, ..all }).contains(&Way::Sound));
        let silent = ways(Effects { command: false, ..all });
        assert!(!silent.contains(&Way::Command) && !silent.contains(&Way::Webhook));
        assert!(!plan(Effects { mark_unread: false, ..all }, Focus::default(), Popup::Auto, true).unread);
        assert!(!plan(Effects { record: false, ..all }, Focus::default(), Popup::Auto, true).unread);
        assert!(!plan(Effects { pane_flash: false, ..all }, Focus::default(), Popup::Auto, true).flash);
    }

    #[test]
    fn rows_move_only_if_the_person_wants_that_at_all() {
        assert!(!plan(Effects::default(), Focus::default(), Popup::Auto, false).reorder);
        assert!(plan(Effects::default(), Focus::default(), Popup::Auto, true).reorder);
    }
}
