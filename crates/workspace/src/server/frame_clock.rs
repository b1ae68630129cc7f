//! When clients are drawn for.

use std::time::{Duration, Instant};

/// The shortest time between two frames, and after the person did something.
const FRAME: Duration = Duration::from_millis(16);
const FRAME_AFTER_INPUT: Duration = Duration::from_millis(3);
/// For so long after a key, what changes may be its echo. A program that takes longer is not noticeably later by a frame.
const ECHO_WITHIN: Duration = Duration::from_millis(50);

/// What came of drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    /// All clients show the same as before.
    Nothing,
    /// Something looks different.
    Changes,
}

/// Not more often than an eye sees, sooner after a key, and never while nothing changes.
#[derive(Debug)]
pub(super) struct FrameClock {
    is_changed: bool,
    /// When the person did something, if that was a moment ago.
    input: Option<Instant>,
    drawn: Instant,
    /// When something looks different by itself.
    changes_at: Option<Instant>,
}

impl FrameClock {
    pub(super) fn new(now: Instant) -> Self {
        Self { is_changed: false, input: None, drawn: now, changes_at: None }
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
    pub(super) fn input(&mut self, now: Instant) {
        self.input = Some(now);
    }

    /// When the next frame is due, if one is.
    pub(super) fn due(&self) -> Option<Instant> {
        let pause = if self.input.is_some() { FRAME_AFTER_INPUT } else { FRAME };
        self.is_changed.then(|| self.drawn + pause).into_iter().chain(self.changes_at).min()
    }

    /// Everything was drawn. Clients that have not taken their last frame yet are drawn for when they have.
    ///
    /// A frame in the same moment as a key is drawn before the program has echoed it, and mostly changes nothing: then it does
    /// not make the echo wait.
    pub(super) fn drawn(&mut self, now: Instant, outcome: Drawn) {
        self.is_changed = false;
        self.changes_at = None;
        self.input = self.input.filter(|input| now.saturating_duration_since(*input) < ECHO_WITHIN);
        if outcome != Drawn::Nothing || self.input != Some(now) {
            self.drawn = now;
        }
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
        clock.input(now);
        assert_eq!(clock.due(), Some(now + FRAME_AFTER_INPUT));
        clock.drawn(now + ECHO_WITHIN, Drawn::Changes);
        assert_eq!(clock.due(), None);
    }

    #[test]
    fn what_changes_by_itself_is_drawn_then_and_once() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        clock.change_at(Some(now + FRAME * 9));
        assert_eq!(clock.due(), Some(now + FRAME * 9));
        clock.change();
        assert_eq!(clock.due(), Some(now + FRAME));
        clock.drawn(now + FRAME * 9, Drawn::Changes);
        assert_eq!(clock.due(), None);
    }

    #[test]
    fn an_echo_does_not_wait_for_the_frame_that_came_before_it() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        let key = now + FRAME;
        clock.input(key);
        clock.change();
        clock.drawn(key, Drawn::Nothing);
        clock.change();
        assert_eq!(
            clock.due(),
            Some(now + FRAME_AFTER_INPUT),
            "nothing was drawn since, so it is due at once"
        );
        clock.drawn(key, Drawn::Changes);
        clock.change();
        assert_eq!(clock.due(), Some(key + FRAME_AFTER_INPUT), "another pane was drawn, so it is due soon");
    }
}
