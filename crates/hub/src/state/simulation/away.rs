//! A person who goes away and returns.

use ringer_core::attention::{Cause, DesktopSession};
use ringer_core::policy::DeliveryChannel;

use super::Simulation;
use crate::message::LoopEvent;

impl Simulation {
    /// Locks the screen, unlocks it, or makes the session unknown.
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

    /// Checks that a digest follows a return, or is a retry. The person may have gone again before it is stored as started.
    pub(super) fn check_digest(&mut self) {
        if self.digest_retries > 0 {
            self.digest_retries -= 1;
        } else {
            assert!(self.returns > 0, "one digest each time that the person comes back");
            self.returns -= 1;
        }
        self.digests += 1;
    }

    /// Checks that notifications that waited while the person was away made no popup and no sound until they were decided again.
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
