//! When clients are drawn for, and what.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::layout::PaneId;

/// The shortest time between two frames, and after the person did something.
const FRAME: Duration = Duration::from_millis(16);
const FRAME_AFTER_INPUT: Duration = Duration::from_millis(3);
/// For so long after a key, what changes may be its echo. A program that takes longer is not noticeably later by a frame.
const ECHO_WITHIN: Duration = Duration::from_millis(50);
/// For so long after a key, the next one is expected.
const TYPES_WITHIN: Duration = Duration::from_secs(1);

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redraw {
    Everything,
    /// What programs wrote in these panes.
    Panes(Vec<PaneId>),
}

/// A key that went to a program, a moment ago.
#[derive(Debug)]
struct TypedKey {
    pane: PaneId,
    at: Instant,
    /// When the pane was drawn since.
    echoed: Option<Instant>,
}

/// Not more often than an eye sees, an echo at once, and never while nothing changes.
#[derive(Debug)]
pub(super) struct FrameClock {
    /// Everything may look different.
    is_changed: bool,
    /// Panes whose programs wrote something.
    written: BTreeSet<PaneId>,
    typed: Option<TypedKey>,
    /// The last key that went to a program: to which pane, and when.
    last_key: Option<(PaneId, Instant)>,
    /// When the person did something, if that was a moment ago.
    input: Option<Instant>,
    drawn: Instant,
    /// When something looks different by itself.
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

    /// Something may look different.
    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    /// A program wrote something, and nothing but its pane looks different.
    pub(super) fn write(&mut self, pane: &PaneId) {
        if !self.written.contains(pane) {
            self.written.insert(pane.clone());
        }
    }

    /// Something will look different by itself then: a flash goes on, or a sentence has been shown for long enough.
    pub(super) fn change_at(&mut self, at: Option<Instant>) {
        self.changes_at = at;
    }

    /// The person did something, and waits to see it.
    pub(super) fn input(&mut self, now: Instant) {
        self.input = Some(now);
    }

    /// The person typed into a pane, and waits for the echo.
    pub(super) fn type_into(&mut self, pane: PaneId, now: Instant) {
        self.last_key = Some((pane.clone(), now));
        self.typed = Some(TypedKey { pane, at: now, echoed: None });
    }

    /// Whether the person types, and not into this pane.
    pub(super) fn is_typed_elsewhere(&self, pane: &PaneId, now: Instant) -> bool {
        self.last_key
            .as_ref()
            .is_some_and(|(typed, at)| typed != pane && now.saturating_duration_since(*at) < TYPES_WITHIN)
    }

    /// The pane that the person typed into a moment ago.
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

    /// An echo waits for no frame. What a program writes after it comes a little later, lest it be drawn piece by piece.
    fn echo_due(&self) -> Option<Instant> {
        let typed = self.typed.as_ref().filter(|typed| self.written.contains(&typed.pane))?;
        Some(typed.echoed.map_or(typed.at, |echoed| echoed + FRAME_AFTER_INPUT))
    }

    /// What is to be drawn now. It is taken to be drawn: clients that have not taken their last frame yet are drawn for when they
    /// have.
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
