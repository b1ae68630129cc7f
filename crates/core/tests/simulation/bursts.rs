//! A program that reports much at once: its terminal shows a few notifications of a kind, then about one a second.

use std::collections::HashMap;
use std::time::Duration;

use ringer_core::attention::Record;
use ringer_core::message::{Place, ShownKind};

/// What a terminal shows of a kind at once, and one more: hooks may delay a notification that was counted earlier.
const AT_ONCE: u64 = 6;

/// When each terminal showed a new notification of each kind.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    shown: HashMap<(Place, ShownKind), Vec<Duration>>,
}

impl Bursts {
    pub(crate) fn shown(&mut self, record: &Record, now: Duration) {
        if record.place.surface.is_none() || record.shown_kind().stays() {
            return;
        }
        let times = self.shown.entry((record.place.clone(), record.shown_kind())).or_default();
        times.push(now);
        for (at, start) in times.iter().enumerate() {
            let count = (times.len() - at) as u64;
            let allowed = AT_ONCE + now.saturating_sub(*start).as_secs();
            assert!(
                count <= allowed,
                "{count} since {start:?}, now {now:?}: {:?} {:?}",
                record.place,
                record.kind
            );
        }
    }

    /// The hub was restarted: it does not remember what it showed.
    pub(crate) fn restart(&mut self) {
        self.shown.clear();
    }
}
