//! The ring of a terminal that is not ours: a sign in its title, as long as something there is unread.

use std::collections::BTreeMap;

use ringer_core::{Place, SurfaceId};
use ringer_journal::Flag;

use crate::dispatch::Dispatcher;
use crate::perform::Job;

/// The reason under which a sign is written down.
const TITLE: &str = "title";
/// The longest title, in characters: more is not read at a glance.
const LONGEST: usize = 60;

/// The surfaces that have a sign, and where they stand. Written down, so that the next hub takes away what this one put there.
#[derive(Debug, Default)]
pub(crate) struct Titles(BTreeMap<SurfaceId, Place>);

impl Titles {
    /// As they were written down.
    pub(crate) fn put_back(flags: &[Flag]) -> Self {
        let titles = flags.iter().filter(|flag| flag.reason == TITLE);
        let places = titles.filter_map(|flag| serde_json::from_str::<Place>(&flag.place).ok());
        Self(places.filter_map(|place| Some((place.surface.clone()?, place))).collect())
    }

    /// As they are to be written down.
    pub(crate) fn flags(&self) -> impl Iterator<Item = Flag> + '_ {
        // Plain data: it cannot fail to be written.
        let json = |place: &Place| serde_json::to_string(place).unwrap_or_default();
        self.0.values().map(move |place| Flag { reason: TITLE.to_owned(), place: json(place) })
    }
}

impl Dispatcher {
    /// A ring goes on or off: the title follows, where that is what the ring is.
    pub(crate) fn ring_title(&mut self, place: &Place, lit: bool) {
        let Some(surface) = &place.surface else { return };
        let by_title = self.hosts.iter().any(|host| host.owns(surface) && host.rings_by_title());
        if self.titles.0.contains_key(surface) == lit || !by_title {
            return;
        }
        let Some(terminal) = self.terminal_of(surface) else { return };
        let text = lit.then(|| self.title_text(place));
        if lit {
            self.titles.0.insert(surface.clone(), place.clone());
        } else {
            self.titles.0.remove(surface);
        }
        self.perform(Job::Title { terminal, text });
    }

    /// Takes away the signs of an earlier hub where nothing is unread any more.
    pub(crate) fn check_titles(&mut self) {
        let now = self.clock.now().mono;
        let places: Vec<Place> = self.titles.0.values().cloned().collect();
        for place in places {
            if !self.engine.attention().rings(&place, now) {
                self.ring_title(&place, false);
            }
        }
    }

    /// What the newest unread notification there says, in a line.
    fn title_text(&self, place: &Place) -> String {
        let mut newest = self.engine.attention().store().newest_of(place);
        let Some(record) = newest.find(|record| !record.is_read) else { return "ringer".to_owned() };
        let text = record.title.as_deref().unwrap_or(&record.body);
        format!("{}: {text}", record.sender).chars().take(LONGEST).collect()
    }
}
