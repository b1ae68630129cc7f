//! Saves the session and the screens, and continues the session of the last server: with its programs, or after a reboot without
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_ipc::{KeptReport, ReportMethod};
use serde_json::json;

use super::program::Program;
use super::saver::SavedScreen;
use super::{AttachMessage, Server};
use crate::effect::Effect;
use crate::emulator::Size;
use crate::keeper::KeptPane;
use crate::layout::PaneId;
use crate::pane::{Pane, surface_of};
use crate::saved_session::{Note, SavedSession, UnusableSession};
use crate::snapshot::saved_size;
use crate::unread_output::{BufferEnd, BufferPosition, KeeperBuffers, UnreadOutput};
use crate::view::{ClientFacts, ClientId, Mode};

/// Timeout for saving everything when the server starts and when it ends.
const SAVE_WITHIN: Duration = Duration::from_secs(2);

/// Returns true if the effect is a report that the last server had saved as unanswered, and that was adopted. The report is
/// removed from the list, so that it stands for one effect only.
fn take_adopted(adopted: &mut Vec<KeptReport>, effect: &Effect) -> bool {
    let Effect::Report { method, params } = effect else { return false };
    let found = adopted.iter().position(|report| report.is(*method, params));
    found.map(|at| adopted.remove(at)).is_some()
}

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
        self.handle_saver(Instant::now());
        self.save_session();
    }

    /// Saves everything before the server ends.
    pub(super) fn save_at_end(&mut self) {
        self.save_all();
        self.saver.finish(Instant::now() + SAVE_WITHIN);
    }

    /// Handles the results of the saver's threads.
    pub(super) fn handle_saver(&mut self, now: Instant) {
        let was_needed = self.kept.is_needed();
        for SavedScreen { pane, is_saved, is_only_one } in self.saver.take_saved_screens(now) {
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
        session.screens = Some(self.paths.screens().to_owned());
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

    /// Takes over the keeper's programs. If there are none, the previous session waits for the first client.
    pub(super) fn adopt(&mut self, kept: Vec<KeptPane>, now: Instant) {
        let saved = SavedSession::read(&self.paths.session()).unwrap_or_else(|error| {
            self.set_session_aside(UnusableSession::of(&error), now);
            None
        });
        if kept.is_empty() {
            self.unrestored = saved.filter(|saved| !saved.panes.is_empty());
            return;
        }
        let mut adopted = saved.as_ref().map(|saved| saved.unanswered.clone()).unwrap_or_default();
        for report in adopted.clone() {
            let kept = self.hub.link.adopt(report);
            self.saver.save_session_at(kept);
        }
        if let Some(saved) = &saved {
            self.state.restore(saved.workspaces.clone(), saved.shown.clone());
        }
        let notes: Vec<Option<Note>> = kept.iter().map(|kept| Note::read(&kept.note)).collect();
        // With each note, the keeper dropped the output it had kept until then.
        let noted_by = notes.iter().flatten().map(|note| note.server).max().unwrap_or(0);
        let (mut last_server, mut taken) = (noted_by, Vec::new());
        let mut endings = Vec::new();
        for (kept, note) in kept.into_iter().zip(notes) {
            let id = PaneId::new(&kept.id);
            let known = saved.iter().flat_map(|saved| &saved.panes).find(|pane| pane.id == id);
            let known = known.or(note.as_ref().map(|note| &note.pane));
            let mut program = Program::new(kept.master);
            program.has_ended = kept.ending.is_some();
            let size = program.size().unwrap_or(Size { columns: 80, lines: 24 });
            let directory = known.map_or_else(|| PathBuf::from("/"), |pane| pane.directory.clone());
            let saved_screen = fs::read(self.paths.screens().join(&kept.id)).unwrap_or_default();
            let (shown, position) = BufferPosition::split(&saved_screen);
            last_server = last_server.max(position.map_or(0, |position| position.server));
            let position = position.filter(|position| position.server > noted_by);
            let unread = UnreadOutput::of(&kept.output, kept.dropped, position);
            taken.push((id.clone(), BufferEnd::of(&kept.output, kept.dropped), unread.lost));
            // The screen may have been saved before the window was resized.
            let mut pane = Pane::new(id.clone(), directory, saved_size(shown).unwrap_or(size), now);
            if let Some(known) = known {
                pane.name.clone_from(&known.name);
                pane.command.clone_from(&known.command);
            }
            // The note is newer than the session: it is sent before the session is saved.
            let newest = note.as_ref().map(|note| &note.pane).or(known);
            let is_reported = newest.is_none_or(|pane| pane.has_ended);
            let (reported, new) = if is_reported { (kept.ending, None) } else { (None, kept.ending) };
            (pane.pid, pane.tty) = (Some(kept.pid), Some(kept.tty));
            endings.extend(new.map(|ending| (id.clone(), ending)));
            // The last server has performed these effects.
            drop(pane.feed(shown, now));
            drop(reported.map(|ending| pane.end(ending)));
            pane.emulator.resize(size);
            let mut effects = self.state.adopt(pane, note.as_ref().map(Note::place), unread, now);
            effects.retain(|effect| !take_adopted(&mut adopted, effect));
            self.perform(effects);
            // Full-screen programs redraw when their size changes.
            program.resize(Size::at_least(size.columns.saturating_sub(1), size.lines));
            program.resize(size);
            self.programs.insert(id, program);
        }
        self.kept = KeeperBuffers::new(last_server + 1);
        for (pane, end, lost) in taken {
            if let Some(end) = end {
                self.kept.take(pane, end, lost);
            }
        }
        let effects = self.state.forget_missing();
        self.perform(effects);
        self.save_all();
        // An ending may lead to a request, and with the first request the keeper drops the output it has kept. So this comes
        // last.
        for (pane, ending) in endings {
            let mut effects = self.state.ended(&pane, ending, now);
            effects.retain(|effect| !take_adopted(&mut adopted, effect));
            self.perform(effects);
        }
        self.save_session();
        self.changed();
    }

    /// Renames a session file that cannot be used, and tells the person.
    fn set_session_aside(&mut self, reason: UnusableSession, now: Instant) {
        // This fails if there is no state directory, and then there was no session.
        if let Ok(name) = reason.set_aside(self.paths.home()) {
            self.attach_message = Some(AttachMessage::new(format!("{reason}; it is kept as {name}"), now));
        }
    }

    /// Restores the panes of the previous session, with shells in their directories.
    pub(super) fn restore(&mut self, facts: &ClientFacts, now: Instant) {
        let Some(saved) = self.unrestored.take() else { return };
        self.state.restore(saved.workspaces.clone(), saved.shown.clone());
        for pane in &saved.panes {
            let directory = pane.directory.clone();
            let size = Size::at_least(facts.columns, facts.lines);
            let mut own = Pane::new(pane.id.clone(), directory.clone(), size, now);
            own.name.clone_from(&pane.name);
            drop(self.state.adopt(own, None, UnreadOutput::default(), now));
            let workspace = self.state.workspace_of(&pane.id).map(|own| own.id.clone()).unwrap_or_default();
            let environment = facts.environment.clone();
            let start = Effect::Start {
                pane: pane.id.clone(),
                workspace,
                command: Vec::new(),
                directory,
                environment,
                size,
            };
            self.perform(vec![start]);
            if pane.is_unread {
                self.restored_unread.insert(pane.id.clone());
            }
        }
        let effects = self.state.forget_missing();
        self.perform(effects);
    }

    /// Updates the working directory of the focused pane when a key binding may open a pane beside it, because not every shell
    /// reports its directory.
    pub(super) fn follow_directory(&mut self, client: ClientId) {
        let is_prefix = self.state.view(client).is_some_and(|view| view.mode == Mode::Prefix);
        let pane = self.state.focused(client).filter(|_| is_prefix).map(|pane| pane.id.clone());
        if let Some(pane) = pane {
            self.find_directory(&pane);
        }
    }

    pub(super) fn find_directory(&mut self, pane: &PaneId) {
        let pid = self.state.pane(pane).filter(|pane| pane.ending.is_none()).and_then(|pane| pane.pid);
        let directory = pid.and_then(|pid| fs::read_link(format!("/proc/{pid}/cwd")).ok());
        // The directory is saved as text. If it was removed, its parents may still exist, so the path is kept without the suffix.
        let directory = directory.as_deref().and_then(Path::to_str);
        if let Some(directory) = directory.map(|path| path.strip_suffix(" (deleted)").unwrap_or(path)) {
            self.state.set_directory(pane, PathBuf::from(directory));
        }
    }

    /// Returns the report that a pane was unread in the previous session, if it was.
    pub(super) fn take_restored_unread(&mut self, pane: &PaneId) -> Option<Effect> {
        let params = json!({ "surface_id": surface_of(pane), "restored": true });
        let report = Effect::Report { method: ReportMethod::Unread, params };
        self.restored_unread.remove(pane).then_some(report)
    }
}
