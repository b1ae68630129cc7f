//! Draws the windows of clients.

use std::time::Instant;

use super::Server;
use super::frame_clock::Redraw;
use crate::draw::{draw, draw_lines};
use crate::layout::PaneId;
use crate::outer_modes::OuterModes;
use crate::view::ClientId;

impl Server {
    /// Draws if a frame is due. A client whose last frame is still being sent is skipped, and gets a full frame later.
    pub(super) fn draw(&mut self, now: Instant) {
        let Some(redraw) = self.frames.take(now) else { return };
        let windows: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, link)| link.is_window && !link.is_leaving)
            .map(|(id, _)| *id)
            .collect();
        let changed: Option<Vec<(PaneId, Vec<u16>)>> = match redraw {
            Redraw::Everything => None,
            Redraw::Panes(panes) => Some(
                panes.into_iter().map(|pane| (pane.clone(), self.state.take_changed_lines(&pane))).collect(),
            ),
        };
        for client in windows {
            if let Some(link) = self.clients.get_mut(&client).filter(|link| link.is_busy()) {
                link.is_behind = true;
            } else if changed.as_ref().is_none_or(|changed| !self.draw_lines_for(client, changed)) {
                self.draw_for(client, now);
            }
        }
    }

    /// Draws a whole window.
    fn draw_for(&mut self, client: ClientId, now: Instant) {
        if self.state.view(client).is_none_or(|view| view.is_in_inbox) {
            return;
        }
        draw(&self.state, client, now, &mut self.screen);
        let mut out = self.mode_changes(client);
        let Some(link) = self.clients.get_mut(&client) else { return };
        self.screen.changes(link.shown.as_ref(), link.abilities, &mut out);
        match &mut link.shown {
            Some(shown) => std::mem::swap(shown, &mut self.screen),
            None => link.shown = Some(self.screen.clone()),
        }
        self.send_output(client, out.as_bytes());
    }

    /// Draws the changed lines of panes. Returns false if the whole window has to be drawn.
    fn draw_lines_for(&mut self, client: ClientId, changed: &[(PaneId, Vec<u16>)]) -> bool {
        if self.state.view(client).is_none_or(|view| view.is_in_inbox) {
            return true;
        }
        // The changes that a client has missed are not recorded.
        let link = self.clients.get(&client).filter(|link| !link.is_behind);
        let Some(shown) = link.and_then(|link| link.shown.as_ref()) else { return false };
        let Some(rows) = draw_lines(&self.state, client, changed, shown, &mut self.screen) else {
            return false;
        };
        let mut out = self.mode_changes(client);
        let Some(link) = self.clients.get_mut(&client) else { return true };
        let Some(shown) = &mut link.shown else { return false };
        self.screen.changes_of_rows(rows.iter().copied(), Some(shown), link.abilities, &mut out);
        shown.cursor = self.screen.cursor;
        for row in rows {
            shown.swap_row(row, &mut self.screen);
        }
        self.send_output(client, out.as_bytes());
        true
    }

    /// Returns the sequences that set a client's terminal to the modes of the focused program.
    fn mode_changes(&mut self, client: ClientId) -> String {
        let (modes, mouse) = self.state.wanted_modes(client);
        let mut out = String::new();
        if let Some(link) = self.clients.get_mut(&client) {
            let modes = OuterModes::of(modes, link.has_mouse.then_some(mouse));
            modes.write_changes(link.modes, &mut out);
            link.modes = modes;
        }
        out
    }
}
