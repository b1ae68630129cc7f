//! Title marks: the ring of a terminal that another program draws, while something there is unread.
//!
//! Tracks which terminals have a mark, and decides the next change; `delivery::titles` performs it. One change per terminal is in
//! flight at a time, so a mark is removed only after it was really set, and only once.

use std::collections::BTreeMap;

use ringer_config::TitleMark;
use ringer_core::message::{Place, SurfaceId};
use ringer_ipc::part::TitleOutcome;
use ringer_journal::PlaceFlag;

/// The reason under which the hub store has title marks.
const TITLE: &str = "title";
/// The most terminals with a mark; further ones get none.
const MAX_MARKED: usize = 1024;

/// The terminals whose titles are or will be marked.
#[derive(Debug, Default)]
pub(in crate::state) struct TitleMarks {
    marks: BTreeMap<SurfaceId, Mark>,
    allowed: TitleMark,
}

#[derive(Debug)]
struct Mark {
    place: Place,
    state: State,
    /// True if something is unread there.
    wanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The mark is being set.
    Setting,
    /// The title is marked.
    Set,
    /// The mark is being removed.
    Removing,
}

/// A title change to perform now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::state) enum TitleStep {
    Set(Place),
    Remove(Place),
}

impl TitleMarks {
    /// Restores the marks that an earlier hub stored.
    pub(in crate::state) fn restore(&mut self, flags: &[PlaceFlag]) {
        let titles = flags.iter().filter(|flag| flag.reason == TITLE);
        let places = titles.filter_map(|flag| serde_json::from_str::<Place>(&flag.place).ok());
        self.marks = places
            .filter_map(|place| Some((place.surface.clone()?, place)))
            .map(|(surface, place)| (surface, Mark { place, state: State::Set, wanted: true }))
            .collect();
    }

    /// Returns the marks to store, so that the next hub can remove them. Marks of tmux panes are always stored, because tmux
    /// removes a mark only if it is there. A mark on a title stack is stored only while it is certainly set: one pop too many
    /// would restore a title that belongs to another program.
    pub(in crate::state) fn flags(&self) -> impl Iterator<Item = PlaceFlag> + '_ {
        let is_there =
            |surface: &SurfaceId, mark: &Mark| mark.state == State::Set || surface.tmux().is_some();
        // Serialising plain data cannot fail.
        let json = |place: &Place| serde_json::to_string(place).unwrap_or_default();
        let there = self.marks.iter().filter(move |(surface, mark)| is_there(surface, mark));
        there.map(move |(_, mark)| PlaceFlag { reason: TITLE.to_owned(), place: json(&mark.place) })
    }

    /// Applies other settings to new marks. Existing marks are removed the way they were set.
    pub(in crate::state) fn allow(&mut self, allowed: TitleMark) {
        self.allowed = allowed;
    }

    fn may_have(&self, surface: &SurfaceId) -> bool {
        self.marks.len() < MAX_MARKED
            && match self.allowed {
                TitleMark::Auto => surface.tmux().is_some(),
                TitleMark::Always => true,
                TitleMark::Off => false,
            }
    }

    /// Records whether something is unread on a surface.
    pub(in crate::state) fn want(&mut self, place: &Place, wanted: bool) -> Option<TitleStep> {
        let surface = place.surface.as_ref()?;
        if let Some(mark) = self.marks.get_mut(surface) {
            mark.wanted = wanted;
            return self.next_step(surface);
        }
        if !wanted || !self.may_have(surface) {
            return None;
        }
        let mark = Mark { place: place.clone(), state: State::Setting, wanted };
        self.marks.insert(surface.clone(), mark);
        Some(TitleStep::Set(place.clone()))
    }

    /// Handles the outcome of a change.
    pub(in crate::state) fn tried(
        &mut self,
        surface: &SurfaceId,
        outcome: TitleOutcome,
    ) -> Option<TitleStep> {
        let mark = self.marks.get_mut(surface)?;
        match (mark.state, outcome) {
            (State::Setting, TitleOutcome::Set) | (State::Removing, TitleOutcome::NotYet) => {
                mark.state = State::Set;
            }
            (State::Setting | State::Removing, _) => {
                let mark = self.marks.remove(surface)?;
                let again = mark.state == State::Removing && mark.wanted;
                return if again { self.want(&mark.place, true) } else { None };
            }
            (State::Set, _) => {}
        }
        // A mark that could not be removed yet is retried later.
        if outcome == TitleOutcome::NotYet { None } else { self.next_step(surface) }
    }

    /// Returns the places that have a mark.
    pub(in crate::state) fn places(&self) -> Vec<Place> {
        self.marks.values().map(|mark| mark.place.clone()).collect()
    }

    /// Returns the next change of a mark, if there is one.
    pub(in crate::state) fn next_step(&mut self, surface: &SurfaceId) -> Option<TitleStep> {
        let mark = self.marks.get_mut(surface)?;
        if mark.state == State::Set && !mark.wanted {
            mark.state = State::Removing;
            return Some(TitleStep::Remove(mark.place.clone()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_config::Config;
    use ringer_core::message::WorkspaceId;
    use ringer_term::Channel;

    const PANE: &str = "tmux:/tmp/s:1:%0";
    const TTY: &str = "tty:/dev/pts/1@5";

    fn place(surface: &str) -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface))
    }

    fn marks(allowed: TitleMark) -> TitleMarks {
        TitleMarks { allowed, ..TitleMarks::default() }
    }

    #[test]
    fn only_where_a_title_can_be_read_back_unless_asked_for() {
        for (allowed, surface, expected) in [
            (TitleMark::Auto, PANE, true),
            (TitleMark::Auto, TTY, false),
            (TitleMark::Always, TTY, true),
            (TitleMark::Always, PANE, true),
            (TitleMark::Off, PANE, false),
        ] {
            let step = marks(allowed).want(&place(surface), true);
            assert_eq!(step, expected.then(|| TitleStep::Set(place(surface))), "{allowed:?} {surface}");
        }
        let config = Config { preferred_channel: Channel::NotificationsDisabled, ..Config::default() };
        let mut none = marks(TitleMark::Always);
        none.allow(config.title_mark());
        assert_eq!(none.want(&place(PANE), true), None);
        assert_eq!(none.want(&place(PANE), false), None, "what was never set is not taken away");
    }

    #[test]
    fn a_mark_is_taken_away_once_and_only_after_it_was_set() {
        let (place, surface) = (place(TTY), SurfaceId::new(TTY));
        let mut marks = marks(TitleMark::Always);
        assert!(marks.want(&place, true).is_some());
        assert_eq!(marks.want(&place, true), None);
        assert_eq!(marks.flags().count(), 0, "it is not there yet");
        assert_eq!(marks.want(&place, false), None, "it is taken away when it is there");
        assert_eq!(marks.tried(&surface, TitleOutcome::Set), Some(TitleStep::Remove(place.clone())));
        assert_eq!(marks.flags().count(), 0, "the next hub must not take it away again");
        assert_eq!(marks.want(&place, true), None, "set again when it is away");
        assert_eq!(marks.tried(&surface, TitleOutcome::Gone), Some(TitleStep::Set(place.clone())));
        assert_eq!(marks.tried(&surface, TitleOutcome::Set), None);
        assert_eq!(marks.flags().count(), 1);
        // The next hub.
        let flags: Vec<PlaceFlag> = marks.flags().collect();
        let mut next = TitleMarks::default();
        next.restore(&flags);
        assert_eq!(next.want(&place, false), Some(TitleStep::Remove(place.clone())));
        assert_eq!(next.tried(&surface, TitleOutcome::Gone), None);
        assert_eq!(next.want(&place, false), None);
        assert!(next.marks.is_empty());
    }

    #[test]
    fn what_could_not_be_set_is_forgotten_and_what_could_not_be_removed_is_tried_again() {
        let (place, surface) = (place(TTY), SurfaceId::new(TTY));
        let mut marks = marks(TitleMark::Always);
        marks.want(&place, true);
        assert_eq!(marks.tried(&surface, TitleOutcome::Gone), None);
        assert!(marks.marks.is_empty());
        marks.want(&place, true);
        marks.tried(&surface, TitleOutcome::Set);
        marks.want(&place, false);
        assert_eq!(marks.tried(&surface, TitleOutcome::NotYet), None);
        assert_eq!(marks.flags().count(), 1, "it is still there");
        assert_eq!(marks.next_step(&surface), Some(TitleStep::Remove(place.clone())));
        assert_eq!(marks.next_step(&surface), None, "one try at a time");
        marks.tried(&surface, TitleOutcome::NotYet);
        marks.want(&place, true);
        assert_eq!(marks.next_step(&surface), None, "it is wanted again, and still there");
    }
}
