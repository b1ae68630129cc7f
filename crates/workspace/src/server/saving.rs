//! Saves the session and the screens, for the next server.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Instant;

use ringer_platform::{Durability, replace_file};

use super::Server;
use super::note::Note;
use crate::layout::PaneId;
use crate::saved_session::{SavedPane, SavedSession};

impl Server {
    /// Saves what is due: the session, and then one screen at each call, so that keys do not wait for all of them.
    pub(super) fn save_some(&mut self, now: Instant) {
        if self.save_at.is_some_and(|at| at <= now) {
            self.find_unsaved();
            self.save_session();
        }
        if let Some(pane) = self.unsaved.pop_front() {
            self.save_screen(&pane);
        }
    }

    /// Saves everything that has changed. The screens come first: with the notes of the session, the keeper drops what it kept of them.
    pub(super) fn save_all(&mut self) {
        // What programs hold back is read already, and nowhere else.
        let (ended, effects) = self.state.end_all_updates();
        self.perform(effects);
        self.set_unsaved(&ended);
        self.find_unsaved();
        while let Some(pane) = self.unsaved.pop_front() {
            self.save_screen(&pane);
        }
        self.save_session();
    }

    /// These panes show something that is not saved.
    pub(super) fn set_unsaved(&mut self, panes: &[PaneId]) {
        for pane in panes {
            self.programs.get_mut(pane).into_iter().for_each(|program| program.is_unsaved = true);
        }
    }

    /// Which screens are saved next.
    fn find_unsaved(&mut self) {
        let unsaved =
            self.programs.iter().filter(|(pane, own)| own.is_unsaved && !self.unsaved.contains(pane));
        let new: Vec<PaneId> = unsaved.map(|(pane, _)| pane.clone()).collect();
        self.unsaved.extend(new);
        for pane in self.unsaved.clone() {
            self.find_directory(&pane);
        }
    }

    pub(super) fn save_session(&mut self) {
        self.save_at = None;
        if self.unrestored.is_some() {
            return;
        }
        if self.state.take_description_change() {
            self.frames.change();
        }
        let session = SavedSession::of(&self.state);
        if self.saved.as_ref() != Some(&session) {
            self.note_changes(&session);
            if session.write(&self.places.session()).is_ok() {
                self.saved = Some(session);
            }
        }
    }

    /// The keeper has what is known of a pane, too, for a server that finds no session.
    fn note_changes(&mut self, session: &SavedSession) {
        let before = self.saved.as_ref();
        let is_new = |pane: &&SavedPane| !before.is_some_and(|before| before.panes.contains(pane));
        // One whose program did not start yet has its note with the request to start it.
        let is_kept = |pane: &&SavedPane| self.programs.contains_key(&pane.id);
        let new: Vec<&SavedPane> = session.panes.iter().filter(is_new).filter(is_kept).collect();
        for pane in new {
            let Some(workspace) = self.state.workspace_of(&pane.id) else { continue };
            let note = Note::of(&workspace.id, pane);
            // A keeper that is gone needs none.
            let _ = note.and_then(|note| self.keeper.note(pane.id.as_str(), &note).ok());
        }
    }

    fn save_screen(&mut self, pane: &PaneId) {
        let screens = self.places.screens();
        let (Some(program), Some(own)) = (self.programs.get_mut(pane), self.state.pane(pane)) else { return };
        if make_directory(&screens).is_ok() {
            let screen = program.snapshots.take(&own.emulator);
            let path = screens.join(pane.as_str());
            program.is_unsaved = replace_file(&path, screen.as_bytes(), Durability::Unsynced).is_err();
        }
    }
}

fn make_directory(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().mode(0o700).create(path)
}
