//! The delivery plan: the channels of a notification, and the fallbacks if one fails.

use crate::attention::Cause;
use crate::policy::{DeliveryChannel, Effects};

/// Where popups are shown (`notify.popup`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PopupMode {
    /// The desktop; the terminal if the desktop does not answer.
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

/// The plan for a notification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a list of things to do or not to do")]
pub(crate) struct DeliveryPlan {
    /// The deliveries. The channels of each are tried in order until one works.
    pub deliveries: Vec<Vec<DeliveryChannel>>,
    /// True if it is recorded.
    pub record: bool,
    /// True if it is recorded as unread, with a ring.
    pub unread: bool,
    /// True if its pane flashes.
    pub flash: bool,
    /// True for a brief ring, because the pane is in view.
    pub brief_ring: bool,
    /// True if its workspace moves to the top.
    pub reorder: bool,
    /// The reasons, for the trail.
    pub why: Vec<Cause>,
}

impl DeliveryPlan {
    /// Keeps only some channels.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(DeliveryChannel) -> bool) {
        for group in &mut self.deliveries {
            group.retain(|channel| keep(*channel));
        }
        self.deliveries.retain(|group| !group.is_empty());
    }
}

/// Plans how a notification is delivered. With `seen`, when the person looks at its pane, nothing pops up or sounds. Commands
/// and webhooks still run: they may keep a log, or tell somebody else.
pub(crate) fn plan_delivery(
    effects: Effects,
    seen: bool,
    popup: PopupMode,
    reordering: bool,
) -> DeliveryPlan {
    let mut plan = DeliveryPlan {
        record: effects.record,
        unread: effects.record && effects.mark_unread && !seen,
        flash: effects.pane_flash,
        brief_ring: effects.record && effects.mark_unread && seen,
        reorder: effects.reorder_workspace && reordering,
        ..DeliveryPlan::default()
    };
    if seen {
        plan.why.push(Cause::InView);
    } else if effects.desktop && popup == PopupMode::Off {
        plan.why.push(Cause::PopupsDisabled);
    }
    if effects.desktop && !seen {
        plan.deliveries.extend(popups(popup).iter().map(|channels| channels.to_vec()));
    }
    if effects.sound && !seen {
        plan.deliveries.push(vec![DeliveryChannel::Sound]);
    }
    if effects.command {
        plan.deliveries.push(vec![DeliveryChannel::Command]);
        plan.deliveries.push(vec![DeliveryChannel::Webhook]);
    }
    plan
}

/// The channels for popups. A notification makes one popup, unless the setting is `both`.
fn popups(popup: PopupMode) -> &'static [&'static [DeliveryChannel]] {
    match popup {
        PopupMode::Auto => &[&[DeliveryChannel::Desktop, DeliveryChannel::Terminal]],
        PopupMode::Desktop => &[&[DeliveryChannel::Desktop]],
        PopupMode::Terminal => &[&[DeliveryChannel::Terminal]],
        PopupMode::Both => &[&[DeliveryChannel::Desktop], &[DeliveryChannel::Terminal]],
        PopupMode::Off => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_pops_up_or_sounds_of_what_is_in_view_and_commands_run() {
        let plan = plan_delivery(Effects::default(), false, PopupMode::Auto, false);
        assert!(plan.unread && !plan.brief_ring && plan.deliveries.len() == 4, "{plan:?}");
        let plan = plan_delivery(Effects::default(), true, PopupMode::Both, false);
        assert!(!plan.unread && plan.brief_ring, "{plan:?}");
        assert_eq!(plan.deliveries, [[DeliveryChannel::Command], [DeliveryChannel::Webhook]]);
    }

    #[test]
    fn one_popup_unless_the_person_wants_both() {
        let channels = |popup| {
            let effects = Effects { desktop: true, record: true, ..Effects::NONE };
            plan_delivery(effects, false, popup, false).deliveries
        };
        assert_eq!(channels(PopupMode::Auto), [vec![DeliveryChannel::Desktop, DeliveryChannel::Terminal]]);
        assert_eq!(channels(PopupMode::Desktop), [[DeliveryChannel::Desktop]]);
        assert_eq!(channels(PopupMode::Terminal), [[DeliveryChannel::Terminal]]);
        assert_eq!(channels(PopupMode::Both), [[DeliveryChannel::Desktop], [DeliveryChannel::Terminal]]);
        assert!(channels(PopupMode::Off).is_empty());
        let why = |effects| plan_delivery(effects, false, PopupMode::Off, false).why;
        assert_eq!(why(Effects::default()), [Cause::PopupsDisabled]);
        assert!(why(Effects::NONE).is_empty(), "there would have been none");
    }

    #[test]
    fn each_switch_turns_off_its_own() {
        let all = Effects::default();
        let channels = |effects| plan_delivery(effects, false, PopupMode::Auto, true).deliveries.concat();
        assert!(!channels(Effects { desktop: false, ..all }).contains(&DeliveryChannel::Terminal));
        assert!(!channels(Effects { sound: false, ..all }).contains(&DeliveryChannel::Sound));
        let silent = channels(Effects { command: false, ..all });
        assert!(!silent.contains(&DeliveryChannel::Command) && !silent.contains(&DeliveryChannel::Webhook));
        assert!(!plan_delivery(Effects { mark_unread: false, ..all }, false, PopupMode::Auto, true).unread);
        assert!(!plan_delivery(Effects { record: false, ..all }, false, PopupMode::Auto, true).unread);
        assert!(!plan_delivery(Effects { pane_flash: false, ..all }, false, PopupMode::Auto, true).flash);
    }

    #[test]
    fn rows_move_only_if_the_person_wants_that_at_all() {
        assert!(!plan_delivery(Effects::default(), false, PopupMode::Auto, false).reorder);
        assert!(plan_delivery(Effects::default(), false, PopupMode::Auto, true).reorder);
    }
}
