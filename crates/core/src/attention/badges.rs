//! Badges and rings: the marks on workspaces and surfaces that need attention.
//!
//! A workspace is unread because of its notifications, or for one of three other reasons ([`UnreadReason`]).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attention::{AddOutcome, NotificationStore, ReadReason, Record};
use crate::message::{MessageId, Place, ShownKind, SurfaceId, WorkspaceId};

/// Duration of the ring on the focused pane, where the notification is read at once. A choice, not a measurement.
const BRIEF_RING: Duration = Duration::from_secs(2);

/// Why a workspace is unread, apart from its notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UnreadReason {
    /// The person marked it unread. Ends when they mark it read, or when a notification arrives there.
    Manual,
    /// A surface reported activity. Ends when the person reads it.
    Panel,
    /// It was unread in the previous session, and its notifications were not saved. Ends when the person reads it.
    Restored,
}

impl UnreadReason {
    const ALL: [Self; 3] = [Self::Manual, Self::Panel, Self::Restored];

    /// The name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Panel => "panel",
            Self::Restored => "restored",
        }
    }

    /// Returns the reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// A lit ring of a surface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Number of unread notifications on the surface; 0 for the brief ring of a surface that the person looks at.
    pub unread: usize,
    /// The kind of the most urgent unread notification.
    pub kind: Option<ShownKind>,
}

impl Ring {
    /// Combines the rings of two surfaces that are shown as one.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let kinds = self.kind.into_iter().chain(other.kind);
        Self {
            unread: self.unread + other.unread,
            kind: kinds.max_by_key(|kind| (kind.urgency(), kind.is_prompt())),
        }
    }
}

/// The number on a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Badge(pub usize);

impl fmt::Display for Badge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            number if number > 99 => formatter.write_str("99+"),
            number => write!(formatter, "{number}"),
        }
    }
}

/// The surfaces of a workspace to which a reason applies; `None` stands for the workspace as a whole.
type SurfaceSet = HashSet<Option<SurfaceId>>;

/// The notification store, with the badges and rings that follow from it.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{Kind, MessageId};
/// use ringer_core::attention::{Attention, ReadReason, Record, UnreadReason};
/// use ringer_core::message::{Place, SurfaceId, WorkspaceId};
///
/// let mut attention = Attention::default();
/// let (workspace, pane) = (WorkspaceId::new("w"), Place::surface(WorkspaceId::new("w"), SurfaceId::new("s")));
/// attention.add(Record::new(MessageId::new(0, [0; 10]), pane.clone(), Kind::Complete, "done", 0), 0);
/// attention.set(UnreadReason::Panel, pane.clone());
/// assert_eq!(attention.badge(&workspace).to_string(), "2");
/// assert!(attention.has_ring(&pane, Duration::ZERO));
/// attention.read(&pane, 0, &ReadReason::Looked);
/// assert_eq!(attention.badge(&workspace).to_string(), "");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Attention {
    store: NotificationStore,
    reasons: HashMap<UnreadReason, HashMap<WorkspaceId, SurfaceSet>>,
    /// Focused panes with a brief ring, and when it ends.
    brief_rings: HashMap<Place, Duration>,
}

impl Attention {
    /// The notifications.
    pub fn store(&self) -> &NotificationStore {
        &self.store
    }

    /// The notifications, mutably: to add to their trails or to trim them.
    pub fn store_mut(&mut self) -> &mut NotificationStore {
        &mut self.store
    }

    /// Adds a notification. It ends a manual mark on its place.
    pub fn add(&mut self, record: Record, unix_ms: i64) -> AddOutcome {
        let place = record.place.clone();
        let added = self.store.add(record, unix_ms);
        if added.is_new {
            self.unset(UnreadReason::Manual, &place);
            self.unset_whole(UnreadReason::Manual, &place.workspace);
        }
        added
    }

    /// Marks the notifications at a place read and ends every other reason there. Returns the ids that were unread.
    pub fn read(&mut self, place: &Place, unix_ms: i64, by: &ReadReason) -> Vec<MessageId> {
        self.end_reasons(place);
        self.store.mark_read(place, unix_ms, by)
    }

    /// Ends every other reason at a place. Returns the notifications to mark read.
    pub(crate) fn begin_read(&mut self, place: &Place) -> Vec<MessageId> {
        self.end_reasons(place);
        self.store.unread_ids_of(place)
    }

    /// Ends every other reason. Returns the notifications to mark read.
    pub(crate) fn begin_read_all(&mut self) -> Vec<MessageId> {
        self.reasons.clear();
        self.store.unread_ids()
    }

    /// Removes the notifications and every other reason at a place. Returns the removed notifications.
    pub fn clear(&mut self, place: &Place) -> Vec<Record> {
        let ids = self.begin_clear(place);
        ids.iter().filter_map(|id| self.store.remove(id)).collect()
    }

    /// Ends every other reason and brief ring at a place. Returns the notifications to remove.
    pub(crate) fn begin_clear(&mut self, place: &Place) -> Vec<MessageId> {
        self.end_reasons(place);
        self.brief_rings.retain(|ring, _| !place.covers(ring));
        self.store.ids_of(place)
    }

    /// Ends every other reason and brief ring. Returns the notifications to remove.
    pub(crate) fn begin_clear_all(&mut self) -> Vec<MessageId> {
        self.reasons.clear();
        self.brief_rings.clear();
        self.store.all_ids()
    }

    fn end_reasons(&mut self, place: &Place) {
        for reason in UnreadReason::ALL {
            self.unset(reason, place);
        }
    }

    /// Marks a place unread for a reason.
    pub fn set(&mut self, reason: UnreadReason, place: Place) {
        self.reasons.entry(reason).or_default().entry(place.workspace).or_default().insert(place.surface);
    }

    /// Ends a reason at a place. For a workspace it ends at all its surfaces.
    pub fn unset(&mut self, reason: UnreadReason, place: &Place) {
        let Some(workspaces) = self.reasons.get_mut(&reason) else { return };
        let Some(surfaces) = workspaces.get_mut(&place.workspace) else { return };
        match &place.surface {
            None => surfaces.clear(),
            Some(_) => _ = surfaces.remove(&place.surface),
        }
        if surfaces.is_empty() {
            workspaces.remove(&place.workspace);
        }
    }

    /// Ends a reason for a workspace as a whole. The reason stays for single surfaces.
    fn unset_whole(&mut self, reason: UnreadReason, workspace: &WorkspaceId) {
        let Some(workspaces) = self.reasons.get_mut(&reason) else { return };
        let Some(surfaces) = workspaces.get_mut(workspace) else { return };
        surfaces.remove(&None);
        if surfaces.is_empty() {
            workspaces.remove(workspace);
        }
    }

    /// Returns true if a reason applies anywhere in a workspace.
    pub fn holds(&self, reason: UnreadReason, workspace: &WorkspaceId) -> bool {
        self.reasons.get(&reason).is_some_and(|workspaces| workspaces.contains_key(workspace))
    }

    /// Returns the number on a workspace: its unread notifications, plus one for each other reason.
    pub fn badge(&self, workspace: &WorkspaceId) -> Badge {
        let others = UnreadReason::ALL.into_iter().filter(|reason| self.holds(*reason, workspace)).count();
        Badge(self.store.unread_of(workspace) + others)
    }

    /// The sum of all badges.
    pub fn unread_count(&self) -> usize {
        let others: usize = self.reasons.values().map(HashMap::len).sum();
        self.store.total_unread() + others
    }

    /// Shows the ring of a focused pane for two seconds.
    pub fn start_brief_ring(&mut self, place: Place, now: Duration) {
        self.brief_rings.insert(place, now + BRIEF_RING);
    }

    /// Returns true if a surface's ring is lit.
    pub fn has_ring(&self, place: &Place, now: Duration) -> bool {
        self.store.has_unread(place) || self.brief_rings.get(place).is_some_and(|until| *until > now)
    }

    /// Returns a surface's ring, if it is lit.
    pub fn ring(&self, place: &Place, now: Duration) -> Option<Ring> {
        let unread = || self.store.unread_at(place);
        let most_urgent = || unread().min_by(|one, two| one.by_urgency(two));
        self.has_ring(place, now)
            .then(|| Ring { unread: unread().count(), kind: most_urgent().map(Record::shown_kind) })
    }

    /// Returns when the next brief ring ends.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.brief_rings.values().min().copied()
    }

    /// Ends the brief rings whose time is over. Returns their places.
    pub fn tick(&mut self, now: Duration) -> Vec<Place> {
        let over: Vec<Place> = self
            .brief_rings
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(place, _)| place.clone())
            .collect();
        for place in &over {
            self.brief_rings.remove(place);
        }
        over
    }

    /// Every place that is unread for some reason.
    pub(crate) fn places_with_reason(&self) -> impl Iterator<Item = Place> {
        UnreadReason::ALL.into_iter().flat_map(|reason| self.places(reason))
    }

    /// The reasons that apply at a place, or everywhere.
    pub(crate) fn reasons_of(&self, place: Option<&Place>) -> Vec<(UnreadReason, Place)> {
        self.reasons().filter(|(_, of)| place.is_none_or(|place| place.covers(of))).collect()
    }

    /// Every place that is unread for a reason other than a notification, with the reason.
    pub fn reasons(&self) -> impl Iterator<Item = (UnreadReason, Place)> + '_ {
        UnreadReason::ALL
            .into_iter()
            .flat_map(|reason| self.places(reason).into_iter().map(move |place| (reason, place)))
    }

    /// The places that are unread for a reason, sorted.
    pub(crate) fn places(&self, reason: UnreadReason) -> Vec<Place> {
        let workspaces = self.reasons.get(&reason).into_iter().flatten();
        let mut places: Vec<Place> = workspaces
            .flat_map(|(workspace, surfaces)| {
                surfaces
                    .iter()
                    .map(|surface| Place { workspace: workspace.clone(), surface: surface.clone() })
            })
            .collect();
        places.sort();
        places
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Kind;

    fn pane(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
    }

    fn record(number: u64, place: Place) -> Record {
        Record::new(MessageId::new(number, [0; 10]), place, Kind::Waiting, "x", 0)
    }

    fn badge(attention: &Attention) -> String {
        attention.badge(&WorkspaceId::new("w")).to_string()
    }

    #[test]
    fn a_badge_counts_notifications_and_one_for_each_reason() {
        let mut attention = Attention::default();
        assert_eq!(badge(&attention), "");
        attention.add(record(1, pane("a")), 0);
        for reason in UnreadReason::ALL {
            attention.set(reason, pane("a"));
            attention.set(reason, pane("b"));
        }
        assert_eq!(badge(&attention), "4");
    }

    #[test]
    fn above_99_it_reads_99_plus() {
        assert_eq!(Badge(99).to_string(), "99");
        assert_eq!(Badge(100).to_string(), "99+");
    }

    #[test]
    fn manual_ends_when_read_or_when_a_notification_arrives_there() {
        let mut attention = Attention::default();
        let workspace = WorkspaceId::new("w");
        attention.set(UnreadReason::Manual, pane("a"));
        attention.add(record(1, pane("b")), 0);
        assert!(attention.holds(UnreadReason::Manual, &workspace), "another surface");
        attention.add(record(2, pane("a")), 0);
        assert!(!attention.holds(UnreadReason::Manual, &workspace));
        attention.set(UnreadReason::Manual, Place::workspace(workspace.clone()));
        attention.read(&Place::workspace(workspace.clone()), 0, &ReadReason::Looked);
        assert!(!attention.holds(UnreadReason::Manual, &workspace));
    }

    #[test]
    fn panel_and_restored_end_only_when_read() {
        let mut attention = Attention::default();
        let workspace = WorkspaceId::new("w");
        attention.set(UnreadReason::Panel, pane("a"));
        attention.set(UnreadReason::Restored, Place::workspace(workspace.clone()));
        attention.add(record(1, pane("a")), 0);
        assert!(
            attention.holds(UnreadReason::Panel, &workspace)
                && attention.holds(UnreadReason::Restored, &workspace)
        );
        attention.read(&pane("a"), 0, &ReadReason::Looked);
        assert!(
            !attention.holds(UnreadReason::Panel, &workspace)
                && attention.holds(UnreadReason::Restored, &workspace)
        );
        attention.read(&Place::workspace(workspace.clone()), 0, &ReadReason::Looked);
        assert_eq!(badge(&attention), "");
    }

    #[test]
    fn the_ring_on_the_pane_in_view_goes_out_after_two_seconds() {
        let mut attention = Attention::default();
        let second = Duration::from_secs;
        attention.start_brief_ring(pane("a"), second(10));
        assert!(attention.has_ring(&pane("a"), second(11)) && !attention.has_ring(&pane("b"), second(11)));
        assert_eq!(attention.next_deadline(), Some(second(12)));
        assert_eq!(attention.tick(second(11)), []);
        assert_eq!(attention.tick(second(12)), [pane("a")]);
        assert!(!attention.has_ring(&pane("a"), second(12)));
    }

    #[test]
    fn clearing_takes_everything_along() {
        let mut attention = Attention::default();
        attention.add(record(1, pane("a")), 0);
        attention.set(UnreadReason::Panel, pane("a"));
        attention.start_brief_ring(pane("a"), Duration::ZERO);
        assert_eq!(attention.clear(&Place::workspace(WorkspaceId::new("w"))).len(), 1);
        assert_eq!((badge(&attention).as_str(), attention.has_ring(&pane("a"), Duration::ZERO)), ("", false));
    }

    proptest! {
        #[test]
        fn badge_arithmetic(steps in prop::collection::vec((0u8..6, 0u64..6, 0usize..3), 0..60)) {
            let places = [pane("a"), pane("b"), Place::workspace(WorkspaceId::new("w"))];
            let mut attention = Attention::default();
            for (step, number, place) in steps {
                let place = &places[place];
                match step {
                    0 => drop(attention.add(record(number, place.clone()), 0)),
                    1 => drop(attention.read(place, 0, &ReadReason::Looked)),
                    2 => drop(attention.clear(place)),
                    3..5 => attention.set(UnreadReason::ALL[usize::from(step) - 2], place.clone()),
                    _ => attention.unset(UnreadReason::Manual, place),
                }
                let workspace = WorkspaceId::new("w");
                let unread = attention.store().newest().filter(|record| !record.is_read).count();
                let reasons = UnreadReason::ALL.into_iter().filter(|reason| !attention.places(*reason).is_empty()).count();
                prop_assert_eq!(attention.badge(&workspace), Badge(unread + reasons));
            }
        }
    }
}
