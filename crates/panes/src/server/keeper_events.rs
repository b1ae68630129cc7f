//! Handles the events of the keeper, and its loss.

use std::io;
use std::time::Instant;

use super::program::Program;
use super::{Server, connect_keeper};
use crate::keeper::{KeeperEvent, KeptPane, StartPane};
use crate::layout::PaneId;
use crate::unread_output::{BufferEnd, UnreadOutput};

/// The most reads from a program that has ended, before its end is shown: 256 KiB.
const LAST_READS: usize = 16;

impl Server {
    pub(super) fn handle_keeper(&mut self, now: Instant) -> io::Result<()> {
        let Ok(events) = self.keeper.events() else {
            // Running programs go on. The next program to start gets another keeper.
            self.lose_keeper(None);
            return Ok(());
        };
        for event in events {
            let has_ended = matches!(event, KeeperEvent::Ended { .. });
            let effects = match event {
                // The pane was closed before its program had started.
                KeeperEvent::Started { id, .. } if self.state.pane(&PaneId::new(&id)).is_none() => Vec::new(),
                KeeperEvent::Started { id, pid, tty, master } => {
                    let pane = PaneId::new(&id);
                    let mut program = Program::new(master);
                    program.write(&self.typed_early.remove(&pane).unwrap_or_default());
                    if let Some(own) = self.state.pane(&pane) {
                        program.resize(own.emulator.size());
                    }
                    self.programs.insert(pane.clone(), program);
                    let mut effects = self.state.started(&pane, pid, tty, now);
                    effects.extend(self.take_restored_unread(&pane));
                    effects
                }
                // The failure is about a note: another keeper had the program, which runs on.
                KeeperEvent::Failed { id, .. } if self.programs.contains_key(&PaneId::new(&id)) => Vec::new(),
                KeeperEvent::Failed { id, why } => self.state.start_failed(&PaneId::new(&id), &why),
                KeeperEvent::Ended { id, ending } => {
                    let pane = PaneId::new(&id);
                    if let Some(program) = self.programs.get_mut(&pane) {
                        program.has_ended = true;
                    }
                    // The last output is shown first.
                    for _ in 0..LAST_READS {
                        self.serve_program(&pane, true, false, now)?;
                    }
                    self.state.ended(&pane, ending, now)
                }
            };
            self.perform(effects);
            self.changed();
            if has_ended {
                // Otherwise the next server would report the end once more.
                self.save_session();
            }
        }
        Ok(())
    }

    /// Handles the end of the keeper. Nobody reports any more how its programs end. Programs that it was asked to start have
    /// failed, except for `starting`, which another keeper is asked to start.
    fn lose_keeper(&mut self, starting: Option<&PaneId>) {
        self.is_keeper_gone = true;
        let is_waiting = |id: &PaneId| !self.programs.contains_key(id) && Some(id) != starting;
        let asked = self.state.panes().filter(|pane| pane.failure.is_none() && is_waiting(&pane.id));
        let asked: Vec<PaneId> = asked.map(|pane| pane.id.clone()).collect();
        for pane in asked {
            let effects = self.state.start_failed(&pane, "the keeper ended before it had started it");
            self.perform(effects);
            self.changed();
        }
        self.programs.values_mut().for_each(Program::lose_keeper);
        let panes: Vec<PaneId> = self.programs.keys().cloned().collect();
        for pane in panes {
            self.close_if_lost(&pane);
        }
    }

    /// Closes a pane whose program has ended, if no keeper will report how.
    pub(super) fn close_if_lost(&mut self, pane: &PaneId) {
        let is_lost = self.programs.get(pane).is_some_and(Program::is_lost);
        if is_lost && self.state.pane(pane).is_some_and(|own| own.ending.is_none()) {
            let effects = self.state.close(pane);
            self.perform(effects);
            self.changed();
        }
    }

    pub(super) fn start_with_keeper(&mut self, start: &StartPane) -> io::Result<()> {
        if !self.is_keeper_gone {
            self.release_kept();
            match self.keeper.start(start) {
                // The request is too long for any keeper.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(_) => {}
                Ok(()) => {
                    self.kept.drop_all();
                    return Ok(());
                }
            }
        }
        self.lose_keeper(Some(&PaneId::new(&start.id)));
        let (keeper, kept) = connect_keeper(&self.paths, &*self.start_keeper)?;
        (self.keeper, self.is_keeper_gone) = (keeper, false);
        // This may be another keeper, or the same one that did not receive the last notes.
        self.noted.clear();
        for pane in &kept {
            self.take_back(pane);
        }
        self.release_kept();
        for pane in kept.iter().map(|pane| PaneId::new(&pane.id)) {
            if !self.programs.contains_key(&pane) {
                self.forget_at_once(&pane);
            }
        }
        self.keeper.start(start)?;
        self.kept.drop_all();
        Ok(())
    }

    /// Makes the keeper forget a pane. If its program has ended, that may wait until the screens with the kept output are saved.
    pub(super) fn forget_with_keeper(&mut self, pane: PaneId, has_ended: bool) {
        if has_ended && self.kept.is_needed() {
            self.kept.close_later(pane);
            return;
        }
        self.release_kept();
        self.forget_at_once(&pane);
    }

    /// Makes the keeper forget a pane. If the keeper is gone, it is asked again after the next connection.
    pub(super) fn forget_at_once(&mut self, pane: &PaneId) {
        if self.keeper.forget(pane.as_str()).is_ok() {
            self.kept.drop_all();
        }
    }

    /// Sends the notes before another request. Any request makes the keeper drop the output it has kept, and the next server
    /// learns of that from a note.
    fn release_kept(&mut self) {
        if self.kept.is_held() {
            self.note_changes();
        }
    }

    /// Takes over a pane again from a keeper that was there all the time, with the output of its program since then.
    fn take_back(&mut self, kept: &KeptPane) {
        let (pane, now) = (PaneId::new(&kept.id), Instant::now());
        // A pane that is unknown was closed meanwhile.
        let Some(program) = self.programs.get_mut(&pane) else { return };
        program.find_keeper();
        program.is_unsaved = true;
        let unread = UnreadOutput::of(&kept.output, kept.dropped, self.kept.position(&pane));
        if let Some(end) = BufferEnd::of(&kept.output, kept.dropped) {
            self.kept.take(pane.clone(), end, unread.lost);
        }
        // Output that the pane shows already has been handled and counted by this server.
        let lost = if unread.shown.is_empty() { unread.lost } else { 0 };
        let mut effects = self.state.unread_output(&pane, UnreadOutput { shown: &[], lost, ..unread }, now);
        let is_new = self.state.pane(&pane).is_some_and(|own| own.ending.is_none());
        if let Some(ending) = kept.ending.filter(|_| is_new) {
            program.has_ended = true;
            effects.extend(self.state.ended(&pane, ending, now));
        }
        self.perform(effects);
        self.changed();
    }
}
