//! What is done about the listings of a tmux server, without one: for fuzzing.

use std::collections::BTreeMap;

use ringer_core::attention::OnePane;
use ringer_core::message::ShownKind;

use crate::drawing::{Drawing, PaneRing, Step};
use crate::look::{FocusReports, Look, Pane, View};

/// A server whose commands are only named.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct OfflineTmux {
    drawing: Drawing,
    reports: FocusReports,
}

/// What one listing says, and what is done about it.
#[doc(hidden)]
#[derive(Debug)]
pub struct OfflineLook {
    /// The panes: id, window, terminal, place and title.
    pub panes: Vec<[String; 5]>,
    /// What the person looks at: a client and the id of a pane.
    pub views: Vec<(String, String)>,
    /// When that has to be found out again, in seconds since 1970.
    pub again: Option<i64>,
    /// The ids of panes in which a bell rang.
    pub bells: Vec<String>,
    /// The words of the commands that draw a ring in every pane, or in none.
    pub commands: Vec<Vec<String>>,
}

impl OfflineTmux {
    /// Reads a listing at a time in seconds since 1970.
    pub fn look(&mut self, listing: &str, now: i64, is_ringing: bool) -> OfflineLook {
        let look = Look::parse(listing);
        let (views, again) = self.reports.views(&look, now);
        let ring = PaneRing { unread: 1, kind: Some(ShownKind::Question) };
        let rings: BTreeMap<String, PaneRing> =
            look.panes.keys().filter(|_| is_ringing).map(|pane| (pane.clone(), ring)).collect();
        let steps = self.drawing.steps(&look, &rings, OnePane::Border);
        let pane = |(id, pane): (&String, &Pane)| {
            [id, &pane.window, &pane.tty, &pane.place, &pane.title].map(String::clone)
        };
        OfflineLook {
            panes: look.panes.iter().map(pane).collect(),
            views: views.views.into_iter().map(|View { client, pane }| (client, pane)).collect(),
            again,
            bells: look.bells().map(str::to_owned).collect(),
            commands: steps.into_iter().map(Step::words).collect(),
        }
    }
}
