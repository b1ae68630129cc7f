//! When clients are drawn for.

use std::time::{Duration, Instant};

/// The shortest time between two frames, and after the person did something.
const FRAME: Duration = Duration::from_millis(16);
const FRAME_AFTER_INPUT: Duration = Duration::from_millis(3);

/// Not more often than an eye sees, sooner after a key, and never while nothing changes.
#[derive(Debug)]
pub(super) struct FrameClock {
    is_changed: bool,
    had_input: bool,
    drawn: Instant,
    /// When something looks different by itself.
    changes_at: Option<Instant>,
}

impl FrameClock {
    pub(super) fn new(now: Instant) -> Self {
        Self { is_changed: false, had_input: false, drawn: now, changes_at: None }
    }

    /// Something may look different.
    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    /// Something will look different by itself then: a flash goes on, or a sentence has been shown for long enough.
    pub(super) fn change_at(&mut self, at: Option<Instant>) {
        self.changes_at = at;
    }

    /// The person did something, and waits to see it.
    pub(super) fn input(&mut self) {
        self.had_input = true;
    }

    /// When the next frame is due, if one is.
    pub(super) fn due(&self) -> Option<Instant> {
        let pause = if self.had_input { FRAME_AFTER_INPUT } else { FRAME };
        self.is_changed.then(|| self.drawn + pause).into_iter().chain(self.changes_at).min()
    }

    /// Everything was drawn, but for clients that have not taken their last frame yet.
    pub(super) fn drawn(&mut self, now: Instant, is_behind: bool) {
        *self = Self { is_changed: is_behind, had_input: false, drawn: now, changes_at: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_after_a_key_comes_sooner_and_none_comes_without_a_change() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        assert_eq!(clock.due(), None);
        clock.change();
        assert_eq!(clock.due(), Some(now + FRAME));
        clock.input();
        assert_eq!(clock.due(), Some(now + FRAME_AFTER_INPUT));
        clock.drawn(now, false);
        assert_eq!(clock.due(), None);
        clock.drawn(now, true);
        assert_eq!(clock.due(), Some(now + FRAME));
    }

    #[test]
    fn what_changes_by_itself_is_drawn_then_and_once() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        clock.change_at(Some(now + FRAME * 9));
        assert_eq!(clock.due(), Some(now + FRAME * 9));
        clock.change();
        assert_eq!(clock.due(), Some(now + FRAME));
        clock.drawn(now + FRAME * 9, false);
        assert_eq!(clock.due(), None);
    }
}
