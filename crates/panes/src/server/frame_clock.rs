//! Decides when windows are drawn, and which parts.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::layout::PaneId;

/// The shortest time between two frames, and after input.
const FRAME: Duration = Duration::from_millis(16);
const FRAME_AFTER_INPUT: Duration = Duration::from_millis(3);
/// For this time after a key, a change may be its echo. With a slower program, one more frame of delay is not noticeable.
const ECHO_WITHIN: Duration = Duration::from_millis(50);
/// For this time after a key, the next one is expected.
const TYPES_WITHIN: Duration = Duration::from_secs(1);

/// The parts to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redraw {
    Everything,
    /// The changed lines of these panes.
    Panes(Vec<PaneId>),
}

/// A key that was sent to a program less than [`ECHO_WITHIN`] ago.
#[derive(Debug)]
struct TypedKey {
    pane: PaneId,
    at: Instant,
    /// When the pane was last drawn since then.
    echoed: Option<Instant>,
}

/// Limits the frame rate: 60 frames per second, an echo at once, and nothing while nothing changes.
#[derive(Debug)]
pub(super) struct FrameClock {
    /// A full frame is needed.
    is_changed: bool,
    /// Panes with new output.
    written: BTreeSet<PaneId>,
    typed: Option<TypedKey>,
    /// The pane and the time of the last key that was sent to a program.
    last_key: Option<(PaneId, Instant)>,
    /// The time of the last input, if it is recent.
    input: Option<Instant>,
    drawn: Instant,
    /// When an animation or a message changes the picture.
    changes_at: Option<Instant>,
}

impl FrameClock {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            is_changed: false,
            written: BTreeSet::new(),
            typed: None,
            last_key: None,
            input: None,
            drawn: now,
            changes_at: None,
        }
    }

    /// Requests a full frame.
    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    /// Requests a frame for the new output of a pane.
    pub(super) fn write(&mut self, pane: &PaneId) {
        if !self.written.contains(pane) {
            self.written.insert(pane.clone());
        }
    }

    /// Sets the time when the picture changes by itself: the next step of a flash, or the end of a message.
    pub(super) fn change_at(&mut self, at: Option<Instant>) {
        self.changes_at = at;
    }

    /// Records input whose effect the person waits for.
    pub(super) fn input(&mut self, now: Instant) {
        self.input = Some(now);
    }

    /// Records a key that was sent to a program, whose echo the person waits for.
    pub(super) fn type_into(&mut self, pane: PaneId, now: Instant) {
        self.last_key = Some((pane.clone(), now));
        self.typed = Some(TypedKey { pane, at: now, echoed: None });
    }

    /// Returns true if the person is typing into another pane.
    pub(super) fn is_typed_elsewhere(&self, pane: &PaneId, now: Instant) -> bool {
        self.last_key
            .as_ref()
            .is_some_and(|(typed, at)| typed != pane && now.saturating_duration_since(*at) < TYPES_WITHIN)
    }

    /// The pane that may be about to show the echo of a key.
    pub(super) fn typed_pane(&self) -> Option<&PaneId> {
        self.typed.as_ref().map(|typed| &typed.pane)
    }

    /// When the next frame is due, if one is.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.everything_due(), self.panes_due(), self.echo_due()].into_iter().flatten().min()
    }

    fn everything_due(&self) -> Option<Instant> {
        let pause = if self.input.is_some() { FRAME_AFTER_INPUT } else { FRAME };
        self.is_changed.then(|| self.drawn + pause).into_iter().chain(self.changes_at).min()
    }

    fn panes_due(&self) -> Option<Instant> {
        (!self.written.is_empty()).then(|| self.drawn + FRAME)
    }

    /// An echo is drawn at once. Output after it waits a little, so that it is not drawn in pieces.
    fn echo_due(&self) -> Option<Instant> {
        let typed = self.typed.as_ref().filter(|typed| self.written.contains(&typed.pane))?;
        Some(typed.echoed.map_or(typed.at, |echoed| echoed + FRAME_AFTER_INPUT))
    }

    /// Returns what to draw now, and counts it as drawn for all clients. A client whose last frame is still being sent is drawn
    /// later.
    pub(super) fn take(&mut self, now: Instant) -> Option<Redraw> {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let redraw = if is_due(self.everything_due()) {
            (self.is_changed, self.changes_at, self.drawn) = (false, None, now);
            self.echoed(now);
            self.written.clear();
            Redraw::Everything
        } else if is_due(self.panes_due()) {
            self.drawn = now;
            self.echoed(now);
            Redraw::Panes(std::mem::take(&mut self.written).into_iter().collect())
        } else if is_due(self.echo_due()) {
            let pane = self.typed.as_ref().map(|typed| typed.pane.clone())?;
            self.echoed(now);
            self.written.remove(&pane);
            Redraw::Panes(vec![pane])
        } else {
            return None;
        };
        let is_recent = |then: Instant| now.saturating_duration_since(then) < ECHO_WITHIN;
        self.input = self.input.filter(|input| is_recent(*input));
        self.typed = self.typed.take().filter(|typed| is_recent(typed.at));
        Some(redraw)
    }

    fn echoed(&mut self, now: Instant) {
        if let Some(typed) = self.typed.as_mut().filter(|typed| self.written.contains(&typed.pane)) {
            typed.echoed = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(name: &str) -> PaneId {
        PaneId::new(name)
    }

    #[test]
    fn a_frame_after_a_key_comes_sooner_and_none_comes_without_a_change() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        assert_eq!((clock.due(), clock.take(now + FRAME)), (None, None));
        clock.change();
        assert_eq!(clock.due(), Some(now + FRAME));
        clock.input(now);
        assert_eq!(clock.due(), Some(now + FRAME_AFTER_INPUT));
        assert_eq!(clock.take(now + ECHO_WITHIN), Some(Redraw::Everything));
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
        assert_eq!(clock.take(now + FRAME * 9), Some(Redraw::Everything));
        assert_eq!(clock.due(), None);
    }

    #[test]
    fn an_echo_is_drawn_at_once_while_another_pane_floods() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        clock.write(&pane("flood"));
        assert_eq!(clock.take(now + FRAME), Some(Redraw::Panes(vec![pane("flood")])));
        clock.write(&pane("flood"));
        let key = now + FRAME + FRAME_AFTER_INPUT;
        clock.type_into(pane("typed"), key);
        assert_eq!(clock.take(key), None, "the flood waits for its frame");
        clock.write(&pane("typed"));
        assert_eq!(clock.take(key), Some(Redraw::Panes(vec![pane("typed")])));
        clock.write(&pane("typed"));
        assert_eq!(clock.take(key), None, "an echo in pieces is not drawn piece by piece");
        assert_eq!(clock.due(), Some(key + FRAME_AFTER_INPUT));
        clock.type_into(pane("typed"), key);
        assert_eq!(clock.take(key), Some(Redraw::Panes(vec![pane("typed")])), "the echo of the next key");
        assert_eq!(clock.take(now + FRAME * 2), Some(Redraw::Panes(vec![pane("flood")])));
    }

    #[test]
    fn a_pane_that_was_typed_into_long_ago_is_one_of_many() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        clock.type_into(pane("a"), now);
        clock.write(&pane("b"));
        assert_eq!(clock.take(now + ECHO_WITHIN), Some(Redraw::Panes(vec![pane("b")])));
        clock.write(&pane("a"));
        assert_eq!((clock.typed_pane(), clock.due()), (None, Some(now + ECHO_WITHIN + FRAME)));
    }

    #[test]
    fn the_person_types_elsewhere_for_a_while_after_a_key() {
        let now = Instant::now();
        let mut clock = FrameClock::new(now);
        assert!(!clock.is_typed_elsewhere(&pane("a"), now));
        clock.type_into(pane("a"), now);
        assert!(!clock.is_typed_elsewhere(&pane("a"), now) && clock.is_typed_elsewhere(&pane("b"), now));
        assert!(!clock.is_typed_elsewhere(&pane("b"), now + TYPES_WITHIN));
    }
}
