//! Decides when to connect, and whether that may start a hub.

use std::time::{Duration, Instant};

/// The shortest and the longest pause between attempts. After the longest one, the hub's socket is watched instead.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// The longest pause between attempts if the socket cannot be watched, and the shortest one between two reports that start a
/// hub: a hub may be running and refuse.
const WITHOUT_WATCH: Duration = Duration::from_secs(30);
/// The longest pause if the socket is watched: its directory may have been removed and created again.
const IN_ANY_CASE: Duration = Duration::from_mins(5);

/// The attempts to connect since the last connection.
#[derive(Debug, Default)]
pub(super) struct Dialing {
    /// The pause after the last failure, and the time of that failure.
    failure: Option<(Duration, Instant)>,
    /// The last attempt that could start a hub.
    started: Option<Instant>,
    has_new_report: bool,
    /// The watch has found a hub.
    hub_seen: bool,
    /// True if the socket is watched, false if that is not possible, `None` before the first try.
    is_watched: Option<bool>,
}

impl Dialing {
    /// Returns when to connect.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let Some((pause, failed)) = self.failure else { return now };
        if !self.is_watching() {
            return failed + pause;
        }
        let in_any_case = failed + if self.is_watched == Some(true) { IN_ANY_CASE } else { WITHOUT_WATCH };
        let seen = self.hub_seen.then(|| failed + pause);
        let reported =
            self.has_new_report.then(|| self.started.map_or(now, |started| started + WITHOUT_WATCH));
        [seen, reported].into_iter().flatten().fold(in_any_case, Instant::min)
    }

    /// Returns true if the link waits for a hub to appear instead of retrying: the pauses have reached their limit.
    fn is_watching(&self) -> bool {
        self.failure.is_some_and(|(pause, _)| pause > LONGEST)
    }

    /// Returns true if a watch on the socket must be begun.
    pub(super) fn needs_watch(&self) -> bool {
        self.is_watching() && self.is_watched.is_none()
    }

    pub(super) fn watch(&mut self, is_watched: bool) {
        self.is_watched = Some(is_watched);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Begins an attempt. Returns true if it may start a hub: for a report; otherwise with the first attempt, and if
    /// `restarts_hub` soon after the last hub is gone, but not again and again.
    pub(super) fn begin(&mut self, now: Instant, has_report: bool, restarts_hub: bool) -> bool {
        let may_start = has_report || self.started.is_none() || (restarts_hub && !self.is_watching());
        if may_start {
            self.started = Some(now);
        }
        (self.has_new_report, self.hub_seen) = (false, false);
        may_start
    }

    pub(super) fn failed(&mut self, now: Instant) {
        let pause = self.failure.map_or(SHORTEST, |(pause, _)| (pause * 2).min(WITHOUT_WATCH));
        self.failure = Some((pause, now));
        self.is_watched = None;
    }

    /// Records the end of a connection. One that lasted was no failure.
    pub(super) fn lost(&mut self, since: Instant, now: Instant) {
        if now.saturating_duration_since(since) > LONGEST {
            self.failure = None;
        }
        self.failed(now);
    }

    /// Records that the host itself ended the connection.
    pub(super) fn reset(&mut self) {
        self.failure = None;
    }

    pub(super) fn report(&mut self) {
        self.has_new_report = true;
    }

    pub(super) fn see_hub(&mut self) {
        self.hub_seen = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails until the socket is watched. Returns the pauses, and the time of the last failure.
    fn fail(dialing: &mut Dialing, mut now: Instant, restarts_hub: bool) -> (Vec<(u128, bool)>, Instant) {
        let mut pauses = Vec::new();
        while !dialing.is_watching() {
            let due = dialing.due(now);
            pauses.push((due.duration_since(now).as_millis(), dialing.begin(due, false, restarts_hub)));
            now = due;
            dialing.failed(now);
        }
        (pauses, now)
    }

    #[test]
    fn attempts_become_rarer_until_the_socket_is_watched() {
        let (mut dialing, start) = (Dialing::default(), Instant::now());
        let (pauses, failed) = fail(&mut dialing, start, true);
        assert_eq!(pauses, [(0, true), (200, true), (400, true), (800, true), (1600, true)]);
        assert_eq!(dialing.due(failed), failed + WITHOUT_WATCH);
        dialing.watch(true);
        assert_eq!(dialing.due(failed), failed + IN_ANY_CASE);
        // The hub is there, but refuses.
        dialing.see_hub();
        assert_eq!(dialing.due(failed), failed + Duration::from_millis(3200));
        assert!(!dialing.begin(failed, false, true));
        dialing.failed(failed);
        assert_eq!(dialing.due(failed), failed + WITHOUT_WATCH, "it was not seen again");
    }

    #[test]
    fn a_report_starts_a_hub_but_not_again_and_again() {
        let (mut dialing, start) = (Dialing::default(), Instant::now());
        let (pauses, failed) = fail(&mut dialing, start, false);
        assert_eq!(pauses.iter().filter(|(_, may_start)| *may_start).count(), 1, "the first attempt");
        dialing.watch(true);
        dialing.report();
        assert_eq!(dialing.due(failed), start + WITHOUT_WATCH);
        let later = start + WITHOUT_WATCH;
        assert!(dialing.begin(later, true, false));
        dialing.failed(later);
        dialing.watch(true);
        assert_eq!(dialing.due(later), later + IN_ANY_CASE, "the report has been tried");
        dialing.report();
        assert_eq!(dialing.due(later), later + WITHOUT_WATCH);
    }

    #[test]
    fn after_a_connection_that_lasted_the_first_pause_is_the_shortest() {
        let (mut dialing, start) = (Dialing::default(), Instant::now());
        let (_, failed) = fail(&mut dialing, start, true);
        let lost = failed + LONGEST * 2;
        dialing.lost(failed, lost);
        assert_eq!(dialing.due(lost), lost + SHORTEST);
        dialing.lost(lost, lost);
        assert_eq!(dialing.due(lost), lost + SHORTEST * 2);
    }
}
