//! A person who goes and comes back.

use ringer_core::attention::{Cause, DesktopSession};
use ringer_core::policy::DeliveryChannel;

use super::Simulation;
use crate::message::LoopEvent;

impl Simulation {
    /// The person locks the screen, comes back, or nothing is known of them any more.
    pub(super) fn go_or_come(&mut self) {
        let session = match self.random.below(5) {
            0 => None,
            1 | 2 => Some(true),
            _ => Some(false),
        };
        let is_gone = session == Some(true);
        self.returns += u64::from(self.has_gone && !is_gone);
        self.has_gone = is_gone;
        let session =
            session.map(|is_locked| DesktopSession { is_locked, is_idle: false, reports_idle: false });
        self.handle(LoopEvent::DesktopSession(session));
    }

    /// What could wait while the person was away had no popup and no sound, until it was decided again.
    pub(super) fn check_away(&mut self) {
        let disturbs = |channel: &DeliveryChannel| {
            matches!(channel, DeliveryChannel::Desktop | DeliveryChannel::Terminal | DeliveryChannel::Sound)
        };
        for id in self.sent.clone() {
            let mut waits = false;
            for step in self.store.trail(id.as_str()).unwrap().steps() {
                match &step.cause {
                    Cause::Away => waits = true,
                    Cause::Decided { channels, .. } if waits => {
                        let shown = channels.iter().flatten().any(disturbs);
                        assert!(!shown, "{id} waits, and goes through {channels:?}");
                    }
                    Cause::SnoozeEnded => waits = false,
                    Cause::Delivered { channel, .. } => {
                        assert!(!waits || !disturbs(channel), "{id} waits, and went through {channel}");
                    }
                    _ => {}
                }
            }
        }
    }
}
