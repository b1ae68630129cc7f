//! Draws what a client shows.

mod footer;
mod overlay;
mod panes;
pub(crate) mod sidebar;
#[cfg(test)]
mod tests;
mod words;

use std::time::Instant;

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
    }
    if view.mode == Mode::Help {
        overlay::draw_help(state.keys(), screen);
        screen.cursor = None;
    }
}
