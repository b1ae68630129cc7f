//! Marks in titles: the ring of a terminal that another program draws, as long as something there is unread.
//!
//! This is the loop's part: which terminals have a mark, and what has to be done next. `title_writer` does it. One change
//! per terminal is under way at a time, so a mark is taken away only after it was really set, and once.

use std::collections::BTreeMap;

use ringer_core::{Place, SurfaceId};
use ringer_journal::PlaceFlag;
use ringer_term::Channel;

use crate::dispatch::Dispatcher;
use crate::perform::Job;
use crate::title_writer::{TitleChange, TitleOutcome};
use crate::tmux::TmuxPane;
use ringer_config::{Config, TitleMark};

/// The reason under which a mark is written down.
const TITLE: &str = "title";
/// Terminals that may have a mark at once; those beyond get none.
const MAX_MARKED: usize = 1024;

/// The terminals that have a mark in their title, or are about to.
#[derive(Debug, Default)]
pub(crate) struct TitleMarks {
    marks: BTreeMap<SurfaceId, Mark>,
    allowed: TitleMark,
}

#[derive(Debug)]
struct Mark {
    place: Place,
    state: State,
    /// Whether something is unread there.
    wanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is being set.
    Setting,
    /// It is there.
    Set,
    /// It is being taken away.
    Removing,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Set(Place),
    Remove(Place),
}

impl TitleMarks {
    /// The marks that an earlier hub wrote down.
    pub(crate) fn put_back(&mut self, flags: &[PlaceFlag]) {
        let titles = flags.iter().filter(|flag| flag.reason == TITLE);
        let places = titles.filter_map(|flag| serde_json::from_str::<Place>(&flag.place).ok());
        self.marks = places
            .filter_map(|place| Some((place.surface.clone()?, place)))
            .map(|(surface, place)| (surface, Mark { place, state: State::Set, wanted: true }))
            .collect();
    }

    /// The marks to write down, for the next hub to take away. Those of tmux panes always: tmux takes away only what is
    /// there. A mark on a title stack only while it is surely there: to pop the stack once more than it was pushed would
    /// bring back a title that is another program's.
    pub(crate) fn flags(&self) -> impl Iterator<Item = PlaceFlag> + '_ {
        let is_there =
            |surface: &SurfaceId, mark: &Mark| mark.state == State::Set || TmuxPane::of(surface).is_some();
        // Plain data: it cannot fail to be written.
        let json = |place: &Place| serde_json::to_string(place).unwrap_or_default();
        let there = self.marks.iter().filter(move |(surface, mark)| is_there(surface, mark));
        there.map(move |(_, mark)| PlaceFlag { reason: TITLE.to_owned(), place: json(&mark.place) })
    }

    /// Other settings apply to marks that are set from now on; those that are there are taken away as they were set.
    pub(crate) fn allow(&mut self, config: &Config) {
        let none = config.preferred_channel == Channel::NotificationsDisabled;
        self.allowed = if none { TitleMark::Off } else { config.notify.title_mark };
    }

    fn may_have(&self, surface: &SurfaceId) -> bool {
        self.marks.len() < MAX_MARKED
            && match self.allowed {
                TitleMark::Auto => TmuxPane::of(surface).is_some(),
                TitleMark::Always => true,
                TitleMark::Off => false,
            }
    }

    /// Something is unread on a surface, or nothing is any more.
    fn want(&mut self, place: &Place, wanted: bool) -> Option<Step> {
        let surface = place.surface.as_ref()?;
        if let Some(mark) = self.marks.get_mut(surface) {
            mark.wanted = wanted;
            return self.next(surface);
        }
        if !wanted || !self.may_have(surface) {
            return None;
        }
        let mark = Mark { place: place.clone(), state: State::Setting, wanted };
        self.marks.insert(surface.clone(), mark);
        Some(Step::Set(place.clone()))
    }

    /// A change has been tried.
    fn tried(&mut self, surface: &SurfaceId, outcome: TitleOutcome) -> Option<Step> {
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
        // What could not be taken away yet is tried again later.
        if outcome == TitleOutcome::NotYet { None } else { self.next(surface) }
    }

    /// What has to be done about a mark now.
    fn next(&mut self, surface: &SurfaceId) -> Option<Step> {
        let mark = self.marks.get_mut(surface)?;
        if mark.state == State::Set && !mark.wanted {
            mark.state = State::Removing;
            return Some(Step::Remove(mark.place.clone()));
        }
        None
    }
}

impl Dispatcher {
    /// A ring goes on or off: the mark follows, where that is what the ring is.
    pub(crate) fn ring_title(&mut self, place: &Place, lit: bool) {
        let Some(surface) = &place.surface else { return };
        let by_title = self.hosts.iter().any(|host| host.owns(surface) && host.rings_by_title());
        if by_title || !lit {
            let step = self.titles.want(place, lit);
            self.change_title(step);
        }
    }

    /// A change of a title has been tried.
    pub(crate) fn title_tried(&mut self, surface: &SurfaceId, outcome: TitleOutcome) {
        let step = self.titles.tried(surface, outcome);
        self.change_title(step);
    }

    /// It is time to try again to take a mark away.
    pub(crate) fn retry_title(&mut self, surface: &SurfaceId) {
        let step = self.titles.next(surface);
        self.change_title(step);
    }

    /// Takes away the marks of an earlier hub where nothing is unread any more.
    pub(crate) fn check_titles(&mut self) {
        let now = self.clock.now().mono;
        let places: Vec<Place> = self.titles.marks.values().map(|mark| mark.place.clone()).collect();
        for place in places {
            if !self.engine.attention().has_ring(&place, now) {
                self.ring_title(&place, false);
            }
        }
    }

    fn change_title(&mut self, step: Option<Step>) {
        let (place, set) = match step {
            Some(Step::Set(place)) => (place, true),
            Some(Step::Remove(place)) => (place, false),
            None => return,
        };
        let Some(surface) = place.surface.clone() else { return };
        let change = match TmuxPane::of(&surface) {
            Some(pane) => Some(TitleChange::in_tmux(surface.clone(), pane, set)),
            None => self.terminal_of(&surface).map(|terminal| TitleChange::on_stack(terminal, set)),
        };
        match change {
            Some(change) => self.perform(Job::Title(change)),
            // No terminal is known: there is nothing to set, and nothing that could be taken away.
            None => self.title_tried(&surface, TitleOutcome::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::WorkspaceId;

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
            assert_eq!(step, expected.then(|| Step::Set(place(surface))), "{allowed:?} {surface}");
        }
        let config = Config { preferred_channel: Channel::NotificationsDisabled, ..Config::default() };
        let mut none = marks(TitleMark::Always);
        none.allow(&config);
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
        assert_eq!(marks.tried(&surface, TitleOutcome::Set), Some(Step::Remove(place.clone())));
        assert_eq!(marks.flags().count(), 0, "the next hub must not take it away again");
        assert_eq!(marks.want(&place, true), None, "set again when it is away");
        assert_eq!(marks.tried(&surface, TitleOutcome::Gone), Some(Step::Set(place.clone())));
        assert_eq!(marks.tried(&surface, TitleOutcome::Set), None);
        assert_eq!(marks.flags().count(), 1);
        // A hub that comes after this one.
        let flags: Vec<PlaceFlag> = marks.flags().collect();
        let mut next = TitleMarks::default();
        next.put_back(&flags);
        assert_eq!(next.want(&place, false), Some(Step::Remove(place.clone())));
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
        assert_eq!(marks.next(&surface), Some(Step::Remove(place.clone())));
        assert_eq!(marks.next(&surface), None, "one try at a time");
        marks.tried(&surface, TitleOutcome::NotYet);
        marks.want(&place, true);
        assert_eq!(marks.next(&surface), None, "it is wanted again, and still there");
    }
}
