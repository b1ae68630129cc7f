//! Runs the parser and the drawing without a tmux server, for fuzzing.

use std::collections::BTreeMap;

use ringer_config::OnePane;
use ringer_core::message::ShownKind;

use crate::drawing::{Drawing, PaneRing, Step};
use crate::snapshot::{FocusReports, Pane, Snapshot, View};

/// A server whose commands are returned and not run.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct OfflineTmux {
    drawing: Drawing,
    reports: FocusReports,
}

/// What Ringer makes of one listing.
#[doc(hidden)]
#[derive(Debug)]
pub struct OfflineLook {
    /// The panes: id, window, terminal, place and title.
    pub panes: Vec<[String; 5]>,
    /// What the person looks at: a client and the id of a pane.
    pub views: Vec<(String, String)>,
    /// When that changes without an event, in seconds since 1970.
    pub again: Option<i64>,
    /// The ids of panes in which a bell rang.
    pub bells: Vec<String>,
    /// The commands that draw a ring in every pane, or in none.
    pub commands: Vec<Vec<String>>,
}

impl OfflineTmux {
    /// Parses a listing. `now` is in seconds since 1970.
    pub fn look(&mut self, listing: &str, now: i64, is_ringing: bool) -> OfflineLook {
        let snapshot = Snapshot::parse(listing);
        let (views, again) = self.reports.views(&snapshot, now);
        let ring = PaneRing { unread: 1, kind: Some(ShownKind::Question) };
        let rings: BTreeMap<String, PaneRing> =
            snapshot.panes.keys().filter(|_| is_ringing).map(|pane| (pane.clone(), ring)).collect();
        let steps = self.drawing.steps(&snapshot, &rings, OnePane::Border);
        let pane = |(id, pane): (&String, &Pane)| {
            [id, &pane.window, &pane.tty, &pane.place, &pane.title].map(String::clone)
        };
        OfflineLook {
            panes: snapshot.panes.iter().map(pane).collect(),
            views: views.views.into_iter().map(|View { client, pane }| (client, pane)).collect(),
            again,
            bells: snapshot.bells().map(str::to_owned).collect(),
            commands: steps.into_iter().map(Step::words).collect(),
        }
    }
}
