//! Draws for the clients.

use std::time::Instant;

use super::Server;
use super::frame_clock::Drawn;
use crate::draw::draw;
use crate::outer_modes::OuterModes;
use crate::view::ClientId;

impl Server {
    /// Draws for every client that has taken its last frame, not too often.
    pub(super) fn draw(&mut self, now: Instant) {
        if self.frames.due().is_none_or(|due| now < due) {
            return;
        }
        let windows: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, link)| link.is_window && !link.is_leaving)
            .map(|(id, _)| *id)
            .collect();
        let mut outcome = Drawn::Nothing;
        for client in windows {
            if let Some(link) = self.clients.get_mut(&client).filter(|link| link.is_busy()) {
                link.is_behind = true;
            } else if self.draw_for(client, now) && outcome == Drawn::Nothing {
                outcome = Drawn::Changes;
            }
        }
        self.frames.drawn(now, outcome);
    }

    /// Gives whether the client shows something else than before.
    fn draw_for(&mut self, client: ClientId, now: Instant) -> bool {
        if self.state.view(client).is_none_or(|view| view.is_in_inbox) {
            return false;
        }
        draw(&self.state, client, now, &mut self.screen);
        let (modes, mouse) = self.state.wanted_modes(client);
        let Some(link) = self.clients.get_mut(&client) else { return false };
        let mut out = String::new();
        let modes = OuterModes::of(modes, link.has_mouse.then_some(mouse));
        modes.write_changes(link.modes, &mut out);
        link.modes = modes;
        self.screen.changes(link.shown.as_ref(), link.abilities, &mut out);
        match &mut link.shown {
            Some(shown) => std::mem::swap(shown, &mut self.screen),
            None => link.shown = Some(self.screen.clone()),
        }
        let has_changed = !out.is_empty();
        if has_changed {
            self.send_output(client, out.as_bytes());
        }
        has_changed
    }
}
