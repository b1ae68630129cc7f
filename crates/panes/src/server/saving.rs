//! Saves the session and the screens, for the next server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Server;
use super::note::Note;
use super::saver::SavedScreen;
use crate::layout::PaneId;
use crate::saved_session::SavedSession;

/// Timeout for saving everything when the server starts and when it ends.
const SAVE_WITHIN: Duration = Duration::from_secs(2);

impl Server {
    /// Saves the session if it is due, and then one screen per call, so that keys do not wait for all of them.
    pub(super) fn save_some(&mut self, now: Instant) {
        if self.saver.take_due(now) {
            self.find_unsaved();
            self.save_session();
        }
        if let Some(pane) = self.saver.next_screen() {
            self.save_screen(&pane);
        }
    }

    /// Saves the session if it may have changed: the layout that the person has seen must survive a crash.
    pub(super) fn save_changed_session(&mut self) {
        if self.saver.take_session_due(Instant::now()) {
            self.save_session();
        }
    }

    /// Saves all screens, and then the session. The session's notes make the keeper drop the output that these screens contain.
    pub(super) fn save_all(&mut self) {
        let until = Instant::now() + SAVE_WITHIN;
        // Output inside an unfinished synchronized update has been read from the PTY and exists nowhere else.
        let (ended, effects) = self.state.end_all_updates();
        self.perform(effects);
        self.set_unsaved(&ended);
        self.find_unsaved();
        while let Some(pane) = self.saver.wait_for_next_screen(until) {
            self.save_screen(&pane);
        }
        self.saver.wait_for_screens(until);
        self.hear_saver(Instant::now());
        self.save_session();
    }

    /// Saves everything before the server ends.
    pub(super) fn save_at_end(&mut self) {
        self.save_all();
        self.saver.finish(Instant::now() + SAVE_WITHIN);
    }

    /// Handles the results of the saver's threads.
    pub(super) fn hear_saver(&mut self, now: Instant) {
        let was_needed = self.kept.is_needed();
        for SavedScreen { pane, is_saved, is_only_one } in self.saver.hear(now) {
            if is_only_one {
                // The directory of the screens was removed, as the runtime directory is at logout.
                let others: Vec<PaneId> =
                    self.programs.keys().filter(|other| **other != pane).cloned().collect();
                self.set_unsaved(&others);
                self.saver.save_soon(now);
            }
            if is_saved {
                self.kept.set_saved(&pane);
            } else {
                self.set_unsaved(&[pane]);
            }
        }
        if was_needed && !self.kept.is_needed() {
            self.save_session();
        }
    }

    /// Marks the screens of panes as unsaved.
    pub(super) fn set_unsaved(&mut self, panes: &[PaneId]) {
        for pane in panes {
            self.programs.get_mut(pane).into_iter().for_each(|program| program.is_unsaved = true);
        }
    }

    /// Queues the unsaved screens.
    fn find_unsaved(&mut self) {
        let unsaved = self.programs.iter().filter(|(_, program)| program.is_unsaved);
        self.saver.add_screens(unsaved.map(|(pane, _)| pane.clone()));
        for pane in self.saver.unsaved() {
            self.find_directory(&pane);
        }
    }

    pub(super) fn save_session(&mut self) {
        if self.unrestored.is_some() {
            return;
        }
        if self.state.take_description_change() {
            self.frames.change();
        }
        if !self.kept.is_needed() {
            self.note_changes();
        }
        let now = Instant::now();
        let mut session = SavedSession::of(&self.state, self.hub.link.kept_reports(now));
        session.screens = Some(self.places.screens().to_owned());
        self.saver.save_session(session, now);
    }

    /// Sends changed notes to the keeper, for a server that finds no session. With a note, the keeper drops the output it has
    /// kept.
    pub(super) fn note_changes(&mut self) {
        if self.is_keeper_gone {
            return;
        }
        // A pane whose program has not started yet has its note in the request to start it.
        let mut notes: BTreeMap<PaneId, Note> =
            self.programs.keys().filter_map(|pane| Some((pane.clone(), self.note_of(pane)?))).collect();
        let mut has_noted = false;
        notes.retain(|pane, note| {
            if self.noted.get(pane) == Some(note) {
                return true;
            }
            let is_noted = note.text().is_some_and(|text| self.keeper.note(pane.as_str(), &text).is_ok());
            has_noted |= is_noted;
            is_noted
        });
        self.noted = notes;
        if has_noted {
            self.kept.drop_all();
        }
        for pane in self.kept.take_closed() {
            self.forget_at_once(&pane);
        }
    }

    /// The note for the keeper about a pane.
    pub(super) fn note_of(&self, pane: &PaneId) -> Option<Note> {
        let (own, workspace) = self.state.pane(pane).zip(self.state.workspace_of(pane))?;
        Some(Note::of(workspace, own, self.kept.server()))
    }

    fn save_screen(&mut self, pane: &PaneId) {
        let Some(program) = self.programs.get_mut(pane) else { return };
        let Some(mut screen) = self.state.snapshot(pane) else { return };
        program.is_unsaved = false;
        if let Some(position) = self.kept.position(pane) {
            position.write(&mut screen);
        }
        self.saver.save_screen(pane, screen);
    }
}
