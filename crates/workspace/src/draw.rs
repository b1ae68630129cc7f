//! Draws what a client shows.

mod footer;
mod overlay;
mod panes;
mod sidebar;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::time::Instant;

use crate::area::Area;
use crate::layout::PaneId;
use crate::screen::Screen;
use crate::state::State;
use crate::view::{ClientId, Mode};

/// Draws everything for a client.
pub(crate) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let Some(view) = state.view(client) else { return };
    screen.clear(view.facts.columns, view.facts.lines);
    let room = view.room();
    if view.shows_sidebar() {
        sidebar::draw(state, client, screen, room.x, room.height);
    }
    panes::draw(state, client, now, screen, room);
    if view.shows_footer() {
        footer::draw(state, client, now, screen);
    } else {
        footer::draw_prompt(state, client, now, screen);
    }
    if let Mode::Help(first) = view.mode {
        overlay::draw_help(state.keys(), first, screen);
        screen.cursor = None;
    }
}

/// Draws lines of panes over what a client shows, if nothing else has changed. Gives the lines of the screen that were drawn;
/// nothing if everything has to be drawn.
pub(crate) fn draw_lines(
    state: &State,
    client: ClientId,
    changed: &[(PaneId, Vec<u16>)],
    shown: &Screen,
    screen: &mut Screen,
) -> Option<BTreeSet<u16>> {
    let view = state.view(client)?;
    let size = Area::new(0, 0, view.facts.columns, view.facts.lines);
    // The keys are shown over the panes.
    if matches!(view.mode, Mode::Help(_)) || shown.area() != size {
        return None;
    }
    screen.match_size(shown);
    Some(panes::draw_lines(state, client, changed, shown, screen))
}
