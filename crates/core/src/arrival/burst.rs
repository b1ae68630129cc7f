//! Bursts: a surface shows a few notifications of a kind at once. After that it shows the newest about once a second.
//!
//! The others are counted in the text of the one that is shown, and stay in the journal.

use std::collections::HashMap;
use std::time::Duration;

use crate::message::{Place, ShownKind};

/// The notifications of one kind that a surface shows at once. A script that reports a few results is not limited.
const AT_ONCE: u32 = 5;
/// The time after which one more may be shown.
const EVERY: Duration = Duration::from_secs(1);
/// The most surfaces and kinds that are remembered. At the limit those with nothing to limit are removed, and if there are none,
/// all are: the worst effect is that a few more notifications are shown.
const MAX_REMEMBERED: usize = 4096;

/// Limits how often a surface shows notifications of a kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct BurstLimit {
    /// The time at which [`AT_ONCE`] may be shown again.
    full_at: HashMap<(Place, ShownKind), Duration>,
}

impl BurstLimit {
    /// Returns the time from which a notification of this kind may be shown. Without a surface that is at once.
    pub(crate) fn free_at(&self, place: &Place, kind: ShownKind) -> Duration {
        let full_at = self.full_at.get(&(place.clone(), kind)).copied().unwrap_or_default();
        full_at.saturating_sub(EVERY * (AT_ONCE - 1))
    }

    /// Counts a notification that is shown now.
    pub(crate) fn count(&mut self, now: Duration, place: &Place, kind: ShownKind) {
        if place.surface.is_none() {
            return;
        }
        if self.full_at.len() >= MAX_REMEMBERED {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        if self.full_at.len() >= MAX_REMEMBERED {
            self.full_at.clear();
        }
        let full_at = self.full_at.entry((place.clone(), kind)).or_default();
        *full_at = (*full_at).max(now) + EVERY;
    }
}

/// Returns the text of a notification that stands for others of its kind as well.
pub(crate) fn text_with_count(text: &str, others: u32) -> String {
    if others == 0 {
        return text.to_owned();
    }
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    format!("{first} (+{others} like this){rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{SurfaceId, WorkspaceId};

    fn pane(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
    }

    /// Shows a notification if it is allowed.
    fn show(limit: &mut BurstLimit, ms: u64, place: &Place, kind: ShownKind) -> bool {
        let now = Duration::from_millis(ms);
        let is_free = limit.free_at(place, kind) <= now;
        if is_free {
            limit.count(now, place, kind);
        }
        is_free
    }

    #[test]
    fn five_at_once_then_one_a_second_for_each_surface_and_kind() {
        let (mut limit, status) = (BurstLimit::default(), ShownKind::Status);
        let shown = (0..60).filter(|number| show(&mut limit, 10_000 + number, &pane("a"), status)).count();
        assert_eq!(shown, 5);
        assert!(show(&mut limit, 10_060, &pane("b"), status), "another surface");
        assert!(show(&mut limit, 10_060, &pane("a"), ShownKind::Error), "another kind");
        assert_eq!(limit.free_at(&pane("a"), status), Duration::from_secs(11));
        let shown =
            (0..100).filter(|number| show(&mut limit, 11_000 + 100 * number, &pane("a"), status)).count();
        assert_eq!(shown, 10, "ten seconds");
        let shown = (0..60).filter(|number| show(&mut limit, 60_000 + number, &pane("a"), status)).count();
        assert_eq!(shown, 5, "after a rest");
    }

    #[test]
    fn without_a_surface_nothing_is_limited() {
        let (mut limit, place) = (BurstLimit::default(), Place::workspace(WorkspaceId::new("w")));
        assert!((0..60).all(|number| show(&mut limit, number, &place, ShownKind::Status)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut limit = BurstLimit::default();
        for number in 0..10_000 {
            limit.count(Duration::ZERO, &pane(&number.to_string()), ShownKind::Status);
        }
        assert!(limit.full_at.len() <= MAX_REMEMBERED);
    }

    #[test]
    fn the_count_ends_the_first_line() {
        assert_eq!(text_with_count("done", 0), "done");
        assert_eq!(text_with_count("done", 3), "done (+3 like this)");
        assert_eq!(text_with_count("done\nlog", 1), "done (+1 like this)\nlog");
    }
}
