//! Decides whether the person is present. Every rule about presence is in this file.
//!
//! "Away" needs evidence: a locked or idle desktop, a host that says so, or a host that reports all input and had none for a
//! while. Recent input on any host overrides it. Without evidence the person is present.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::SurfaceId;

/// How long a new hub believes that the person is still away while no desktop and no host reports anything: they connect
/// within seconds.
const RESTORED_FOR: Duration = Duration::from_secs(30);

/// The person's session on the desktop, as the login manager reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesktopSession {
    /// True if the screen is locked.
    pub is_locked: bool,
    /// True if the desktop had no input for a while.
    pub is_idle: bool,
    /// True if the desktop reports when it is idle. Several window managers never do, and then `is_idle` means nothing.
    pub reports_idle: bool,
}

/// The last time that the person was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwayPeriod {
    /// When they left, in milliseconds since 1970.
    pub since_ms: i64,
    /// When they came back, if they have.
    pub until_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Present,
    Away,
}

#[derive(Debug, Clone, Default)]
struct HostPresence {
    says_away: bool,
    /// When the person last used the host.
    last_input: Option<Duration>,
    /// The host reports all input, so that no input is evidence, too.
    reports_input: bool,
}

/// The reports of hosts and the desktop about the person's presence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence {
    hosts: BTreeMap<u64, HostPresence>,
    desktop: Option<DesktopSession>,
    locked_at: Option<Duration>,
    /// The person counts as away until then because they were away when the last hub ended.
    restored_until: Option<Duration>,
}

impl Presence {
    /// Records whether a host says that the person is present; `None` if it does not know.
    pub(crate) fn set(&mut self, now: Duration, host: u64, present: Option<bool>) {
        let known = self.hosts.entry(host).or_default();
        known.says_away = present == Some(false);
        if present == Some(true) {
            known.last_input = Some(now);
        }
    }

    /// Records that the person used a host. With `reports_input` the host reports every input.
    pub(crate) fn input(&mut self, now: Duration, host: u64, reports_input: bool) {
        let known = self.hosts.entry(host).or_default();
        known.last_input = Some(now);
        known.says_away = false;
        known.reports_input |= reports_input;
    }

    /// Forgets a host and its reports.
    pub(crate) fn remove(&mut self, host: u64) {
        self.hosts.remove(&host);
    }

    /// Sets the state of the desktop; `None` if it is unknown.
    pub(crate) fn set_desktop(&mut self, now: Duration, desktop: Option<DesktopSession>) {
        let is_locked = desktop.is_some_and(|desktop| desktop.is_locked);
        self.locked_at = is_locked.then(|| self.locked_at.unwrap_or(now));
        if desktop.is_some() {
            // From now on the last hub's knowledge is void, even if the desktop does not report idleness, or disconnects
            // again.
            self.restored_until = None;
        }
        self.desktop = desktop;
    }

    /// Records that the person was away when the last hub ended.
    pub(crate) fn restore_away(&mut self, now: Duration) {
        self.restored_until = Some(now.saturating_add(RESTORED_FOR));
    }

    /// Returns true if there is evidence that the person is away. Without `away_after`, input never becomes too old.
    pub(crate) fn is_away(&self, now: Duration, away_after: Option<Duration>) -> bool {
        let hosts = self.hosts.values().filter_map(|host| self.evidence_of(host, now, away_after));
        let mut is_away = None;
        for evidence in hosts.chain(self.evidence_of_desktop()) {
            match evidence {
                Evidence::Present => return false,
                Evidence::Away => is_away = Some(true),
            }
        }
        is_away.unwrap_or_else(|| self.restored_until.is_some_and(|until| now < until))
    }

    /// Returns when [`Self::is_away`] may change without a new report.
    pub(crate) fn next_change(&self, now: Duration, away_after: Option<Duration>) -> Option<Duration> {
        let inputs = self.hosts.values().filter_map(|host| host.last_input);
        let too_old = inputs.filter_map(|at| Some(at.saturating_add(away_after?)));
        too_old.chain(self.restored_until).filter(|at| *at > now).min()
    }

    fn evidence_of(
        &self,
        host: &HostPresence,
        now: Duration,
        away_after: Option<Duration>,
    ) -> Option<Evidence> {
        if host.says_away {
            return Some(Evidence::Away);
        }
        let last_input = host.last_input?;
        let is_recent = away_after.is_none_or(|after| now.saturating_sub(last_input) < after);
        // Input from before the screen was locked does not count: locking needs input, and then the person leaves.
        if is_recent && self.locked_at.is_none_or(|at| last_input > at) {
            Some(Evidence::Present)
        } else {
            (host.reports_input && !is_recent).then_some(Evidence::Away)
        }
    }

    fn evidence_of_desktop(&self) -> Option<Evidence> {
        let desktop = self.desktop?;
        if desktop.is_locked || desktop.is_idle {
            Some(Evidence::Away)
        } else {
            desktop.reports_idle.then_some(Evidence::Present)
        }
    }
}

/// A client of a host, and the surface that it shows. Two clients of one host may show two surfaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct View {
    /// The client, as its host names it.
    pub client: String,
    /// The surface with the keyboard.
    pub surface: SurfaceId,
}

/// The surfaces that the person looks at, by host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Focus {
    /// The shown surfaces of each host. A host that reports nothing, or that the person is away, is missing.
    hosts: BTreeMap<u64, HashSet<SurfaceId>>,
}

impl Focus {
    /// Replaces the report of a host. Its views count only while the person is present. Returns the surfaces that the person
    /// did not look at before.
    pub(crate) fn set(&mut self, host: u64, views: Vec<View>, present: bool) -> Vec<SurfaceId> {
        let shown: HashSet<SurfaceId> =
            views.into_iter().map(|view| view.surface).filter(|_| present).collect();
        let mut new: Vec<SurfaceId> =
            shown.iter().filter(|surface| !self.is_looked_at(surface)).cloned().collect();
        new.sort();
        if shown.is_empty() {
            self.hosts.remove(&host);
        } else {
            self.hosts.insert(host, shown);
        }
        new
    }

    /// All surfaces that the person looks at.
    pub(crate) fn looked_at(&self) -> Vec<SurfaceId> {
        let mut all: Vec<SurfaceId> = self.hosts.values().flatten().cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns true if the person looks at a surface.
    pub(crate) fn is_looked_at(&self, surface: &SurfaceId) -> bool {
        self.hosts.values().any(|shown| shown.contains(surface))
    }

    /// Returns true if the person looks at any surface.
    pub(crate) fn is_anywhere(&self) -> bool {
        !self.hosts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Option<Duration> = Some(Duration::from_mins(3));

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn desktop(is_locked: bool, is_idle: bool) -> DesktopSession {
        DesktopSession { is_locked, is_idle, reports_idle: true }
    }

    #[test]
    fn away_needs_evidence_and_one_host_that_sees_the_person_is_enough() {
        let mut presence = Presence::default();
        assert!(!presence.is_away(at(0), AFTER), "unknown is present");
        presence.set(at(0), 1, Some(false));
        assert!(presence.is_away(at(0), AFTER));
        presence.set(at(0), 2, Some(true));
        assert!(!presence.is_away(at(1), AFTER), "they are at the other host");
        presence.remove(2);
        assert!(presence.is_away(at(1), AFTER));
        presence.set(at(1), 1, None);
        assert!(!presence.is_away(at(1), AFTER), "the host does not know any more");
    }

    #[test]
    fn a_host_that_says_present_wins_only_with_recent_input() {
        let mut presence = Presence::default();
        presence.set(at(0), 1, Some(false));
        presence.set(at(0), 2, Some(true));
        assert_eq!(presence.next_change(at(1), AFTER), Some(at(180)));
        assert!(!presence.is_away(at(179), AFTER) && presence.is_away(at(180), AFTER));
        presence.input(at(200), 2, false);
        assert!(!presence.is_away(at(201), AFTER));
        assert!(presence.is_away(at(380), AFTER));
        presence.remove(1);
        assert!(!presence.is_away(at(380), AFTER), "this host does not tell of all input");
    }

    #[test]
    fn a_host_that_reports_input_and_had_none_for_a_while_is_evidence() {
        let mut presence = Presence::default();
        presence.input(at(0), 1, true);
        assert!(!presence.is_away(at(179), AFTER) && presence.is_away(at(180), AFTER));
        assert!(!presence.is_away(at(100_000), None), "the setting is off");
        assert_eq!(
            (presence.next_change(at(0), AFTER), presence.next_change(at(180), AFTER)),
            (Some(at(180)), None)
        );
        presence.set_desktop(at(200), Some(desktop(false, false)));
        assert!(!presence.is_away(at(200), AFTER), "they use another program");
        let silent = Some(DesktopSession { reports_idle: false, is_locked: false, is_idle: false });
        presence.set_desktop(at(200), silent);
        assert!(presence.is_away(at(200), AFTER), "this desktop would not tell");
        presence.input(at(300), 1, false);
        assert!(!presence.is_away(at(301), AFTER) && presence.is_away(at(480), AFTER));
    }

    #[test]
    fn a_locked_or_idle_desktop_is_evidence_and_input_before_the_lock_does_not_count() {
        let mut presence = Presence::default();
        for (is_locked, is_idle, expected) in
            [(false, false, false), (true, false, true), (false, true, true)]
        {
            presence.set_desktop(at(1), Some(desktop(is_locked, is_idle)));
            assert_eq!(presence.is_away(at(1), AFTER), expected, "{is_locked} {is_idle}");
        }
        presence.set_desktop(at(1), None);
        assert!(!presence.is_away(at(1), AFTER));
        presence.input(at(9), 1, true);
        presence.set_desktop(at(10), Some(desktop(true, false)));
        assert!(presence.is_away(at(10), AFTER), "they locked it and went");
        presence.set_desktop(at(11), Some(desktop(true, true)));
        presence.input(at(12), 1, true);
        assert!(!presence.is_away(at(12), AFTER), "they type elsewhere, as over ssh");
        presence.set_desktop(at(13), Some(desktop(true, false)));
        assert!(!presence.is_away(at(13), AFTER), "it was locked before");
    }

    #[test]
    fn who_was_away_stays_away_until_something_is_known_or_for_a_while() {
        let restored = || {
            let mut presence = Presence::default();
            presence.restore_away(at(0));
            presence
        };
        let mut presence = restored();
        assert!(presence.is_away(at(29), AFTER) && !presence.is_away(at(30), AFTER));
        assert_eq!(presence.next_change(at(0), AFTER), Some(at(30)));
        presence.set_desktop(at(1), Some(desktop(false, false)));
        assert!(!presence.is_away(at(1), AFTER));
        presence.set_desktop(at(2), None);
        assert!(!presence.is_away(at(2), AFTER), "they came back once");
        let mut presence = restored();
        presence.set_desktop(at(1), Some(desktop(true, false)));
        assert!(presence.is_away(at(1000), AFTER));
        let mut presence = restored();
        presence.input(at(1), 1, false);
        assert!(!presence.is_away(at(1), AFTER));
    }

    fn views(of: &[(&str, &str)]) -> Vec<View> {
        let view = |(client, surface): &(&str, &str)| View {
            client: (*client).to_owned(),
            surface: SurfaceId::new(surface),
        };
        of.iter().map(view).collect()
    }

    fn names(surfaces: &[SurfaceId]) -> Vec<&str> {
        surfaces.iter().map(SurfaceId::as_str).collect()
    }

    #[test]
    fn two_clients_may_show_two_panes_and_two_hosts_the_same() {
        let mut focus = Focus::default();
        assert_eq!(names(&focus.set(1, views(&[("one", "a"), ("two", "b")]), true)), ["a", "b"]);
        assert_eq!(names(&focus.set(2, views(&[("x", "b"), ("y", "c")]), true)), ["c"]);
        assert!(focus.set(1, views(&[("one", "a")]), true).is_empty(), "it is looked at already");
        assert!(focus.is_looked_at(&SurfaceId::new("b")), "the other host shows it");
        assert!(focus.set(2, Vec::new(), true).is_empty());
        assert!(!focus.is_looked_at(&SurfaceId::new("b")) && focus.is_anywhere());
        focus.set(1, Vec::new(), true);
        assert!(!focus.is_anywhere());
    }

    #[test]
    fn looking_counts_only_while_the_person_is_present() {
        let mut focus = Focus::default();
        focus.set(1, views(&[("one", "a")]), true);
        assert!(focus.set(1, views(&[("one", "a")]), false).is_empty());
        assert!(!focus.is_looked_at(&SurfaceId::new("a")) && !focus.is_anywhere());
        assert_eq!(names(&focus.set(1, views(&[("one", "a")]), true)), ["a"], "they look at it again");
    }
}
