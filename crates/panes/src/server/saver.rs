//! Writes the session and the screens for the next server.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, wake_pair};

use crate::file_writer::{Directory, FileWriter};
use crate::layout::PaneId;
use crate::paths::{PanePaths, SESSION};
use crate::saved_session::SavedSession;

/// Delay between a change and the save of the screens.
const SAVE_AFTER: Duration = Duration::from_secs(1);
/// The shortest time between two saves of the session. A border that is dragged changes it with each movement.
const SESSION_PAUSE: Duration = Duration::from_millis(10);
/// Delay of the retry after a failed write.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// The result of saving a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedScreen {
    pub(super) pane: PaneId,
    pub(super) is_saved: bool,
    /// The directory was created again, so no other screen is saved any more.
    pub(super) is_only_one: bool,
}

/// Saves the session and the screens on two threads, because they are in different directories, and one of them may hang.
///
/// Each thread has at most one file in memory. Later changes are saved after that, in their latest state.
pub(super) struct Saver {
    screens: FileWriter,
    session: FileWriter,
    /// Becomes readable when a thread has finished a write.
    woken: UnixStream,
    /// When to look for changed screens and sessions.
    look_at: Option<Instant>,
    /// When to check the session for changes, and when it last changed.
    session_at: Option<Instant>,
    session_changed: Option<Instant>,
    /// The queue of screens to save.
    unsaved: VecDeque<PaneId>,
    /// The session in the file, or being written.
    written: Option<SavedSession>,
    /// The session to write after that.
    next: Option<SavedSession>,
}

impl Saver {
    pub(super) fn start(paths: &PanePaths) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let wakes = Arc::new(wakes);
        Ok(Self {
            screens: FileWriter::start(paths.screens().to_owned(), Directory::Make, Arc::clone(&wakes))?,
            session: FileWriter::start(paths.home().to_owned(), Directory::Exists, wakes)?,
            woken,
            look_at: None,
            session_at: None,
            session_changed: None,
            unsaved: VecDeque::new(),
            written: None,
            next: None,
        })
    }

    /// Becomes readable when [`Self::take_saved_screens`] has something to do.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Schedules a save after a change.
    pub(super) fn save_soon(&mut self, now: Instant) {
        self.look_within(now, SAVE_AFTER);
    }

    /// Schedules a check of the session, at least [`SESSION_PAUSE`] after its last change.
    pub(super) fn save_session_at(&mut self, at: Instant) {
        let at = self.session_changed.map_or(at, |before| at.max(before + SESSION_PAUSE));
        self.session_at = Some(self.session_at.map_or(at, |before| before.min(at)));
    }

    /// Returns true if the check of the session is due, and clears it.
    pub(super) fn take_session_due(&mut self, now: Instant) -> bool {
        self.session_at.take_if(|at| *at <= now).is_some()
    }

    fn look_within(&mut self, now: Instant, within: Duration) {
        let at = now + within;
        self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
    }

    /// When the saver next has something to do.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let looks = self.look_at.into_iter().chain(self.session_at).min();
        if self.has_next_screen() { Some(now) } else { looks }
    }

    /// Returns true if the save is due, and clears it.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }

    /// Queues screens.
    pub(super) fn add_screens(&mut self, panes: impl Iterator<Item = PaneId>) {
        for pane in panes {
            if !self.unsaved.contains(&pane) {
                self.unsaved.push_back(pane);
            }
        }
    }

    /// The panes whose screens are queued.
    pub(super) fn unsaved(&self) -> Vec<PaneId> {
        self.unsaved.iter().cloned().collect()
    }

    fn has_next_screen(&self) -> bool {
        !self.unsaved.is_empty() && self.screens.is_free()
    }

    /// Returns the next screen to save, if the thread is idle.
    pub(super) fn next_screen(&mut self) -> Option<PaneId> {
        if self.has_next_screen() { self.unsaved.pop_front() } else { None }
    }

    /// Like [`Self::next_screen`], but waits for the thread. Returns `None` at the deadline, and the screens stay queued.
    pub(super) fn wait_for_next_screen(&mut self, until: Instant) -> Option<PaneId> {
        if self.screens.wait_until_free(until) { self.unsaved.pop_front() } else { None }
    }

    pub(super) fn save_screen(&self, pane: &PaneId, screen: String) {
        self.screens.replace(pane.as_str(), screen.into_bytes());
    }

    pub(super) fn remove_screen(&self, pane: &PaneId) {
        self.screens.remove(pane.as_str());
    }

    /// Returns true if the saved session contains reports that the hub has not answered.
    pub(super) fn has_unanswered(&self) -> bool {
        self.newest().is_some_and(|session| !session.unanswered.is_empty())
    }

    fn newest(&self) -> Option<&SavedSession> {
        self.next.as_ref().or(self.written.as_ref())
    }

    /// Saves a session after the one that is being written.
    pub(super) fn save_session(&mut self, session: SavedSession, now: Instant) {
        if self.newest() != Some(&session) {
            self.next = Some(session);
            self.session_changed = Some(now);
        }
        self.write_next();
    }

    fn write_next(&mut self) {
        if !self.session.is_free() {
            return;
        }
        let Some(session) = self.next.take() else { return };
        if let Ok(bytes) = session.to_bytes() {
            self.session.replace(SESSION, bytes);
            self.written = Some(session);
        }
    }

    /// Handles the threads' results, and writes the next session. Returns the screens that were written or failed.
    pub(super) fn take_saved_screens(&mut self, now: Instant) -> Vec<SavedScreen> {
        clear_wakes(&self.woken);
        let session = self.session.take_outcomes();
        let screens = self.screens.take_outcomes();
        if session.iter().any(|outcome| !outcome.is_written) {
            self.written = None;
        }
        if session.iter().chain(&screens).any(|outcome| !outcome.is_written) {
            self.look_within(now, TRY_AGAIN);
        }
        self.write_next();
        let saved = |outcome: crate::file_writer::Outcome| SavedScreen {
            pane: PaneId::new(&outcome.name),
            is_saved: outcome.is_written,
            is_only_one: outcome.is_first && outcome.is_written,
        };
        screens.into_iter().map(saved).collect()
    }

    /// Waits until the screens are written, or until a deadline.
    pub(super) fn wait_for_screens(&self, until: Instant) {
        self.screens.wait_until_free(until);
    }

    /// Waits until everything is written, or until a deadline.
    pub(super) fn finish(&mut self, until: Instant) {
        self.wait_for_screens(until);
        if self.session.wait_until_free(until) && self.next.is_some() {
            self.write_next();
            self.session.wait_until_free(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringer_journal::Home;
    use test_support::{DEADLINE, until};

    use super::*;
    use crate::actions::PaneKeys;
    use crate::state::State;

    fn paths() -> (tempfile::TempDir, PanePaths) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        fs::create_dir(home.path()).unwrap();
        let paths = PanePaths::of(&home).unwrap();
        (directory, paths)
    }

    fn session() -> SavedSession {
        let state = State::new(PaneKeys::default(), Box::new(String::new), Instant::now());
        SavedSession::of(&state, Vec::new())
    }

    #[test]
    fn a_session_that_could_not_be_written_is_tried_again_by_itself() {
        let (_directory, paths) = paths();
        fs::remove_dir(paths.home()).unwrap();
        let mut saver = Saver::start(&paths).unwrap();
        saver.save_session(session(), Instant::now());
        saver.finish(Instant::now() + DEADLINE);
        let now = Instant::now();
        assert_eq!(saver.take_saved_screens(now), []);
        assert_eq!(saver.due(now), Some(now + TRY_AGAIN));
        fs::create_dir(paths.home()).unwrap();
        assert!(saver.take_due(now + TRY_AGAIN));
        saver.save_session(session(), now);
        saver.finish(Instant::now() + DEADLINE);
        assert_eq!(SavedSession::read(&paths.session()).unwrap(), Some(session()));
        saver.take_saved_screens(now);
        assert_eq!(saver.due(now), None);
    }

    #[test]
    fn a_change_does_not_wait_for_the_next_try() {
        let (_directory, paths) = paths();
        let (mut saver, now) = (Saver::start(&paths).unwrap(), Instant::now());
        saver.look_within(now, TRY_AGAIN);
        saver.save_soon(now);
        assert_eq!(saver.due(now), Some(now + SAVE_AFTER));
        saver.save_soon(now + SAVE_AFTER / 2);
        assert_eq!(saver.due(now), Some(now + SAVE_AFTER), "the first change counts");
    }

    #[test]
    fn a_session_that_may_have_changed_is_saved_at_once_but_not_all_the_time() {
        let (_directory, paths) = paths();
        let (mut saver, now) = (Saver::start(&paths).unwrap(), Instant::now());
        saver.save_soon(now);
        saver.save_session_at(now + SESSION_PAUSE);
        saver.save_session_at(now);
        assert_eq!(saver.due(now), Some(now));
        assert!(saver.take_session_due(now) && !saver.take_session_due(now));
        assert_eq!(saver.due(now), Some(now + SAVE_AFTER), "screens take their time");
        saver.save_session_at(now);
        assert!(saver.take_session_due(now), "it had not changed");
        saver.save_session(session(), now);
        let soon = now + SESSION_PAUSE / 2;
        for _ in 0..2 {
            saver.save_session_at(soon);
            assert!(!saver.take_session_due(soon));
            assert_eq!(saver.due(soon), Some(now + SESSION_PAUSE));
        }
        assert!(saver.take_session_due(now + SESSION_PAUSE));
    }

    #[test]
    fn screens_are_saved_one_after_the_other() {
        let (_directory, paths) = paths();
        let mut saver = Saver::start(&paths).unwrap();
        let panes = ["a", "b", "a"].map(PaneId::new);
        saver.add_screens(panes.iter().cloned());
        let mut screens = Vec::new();
        until("both are saved", || {
            if let Some(pane) = saver.next_screen() {
                saver.save_screen(&pane, "shown".to_owned());
            }
            screens.extend(saver.take_saved_screens(Instant::now()));
            screens.len() == 2
        });
        assert!(screens.iter().all(|screen| screen.is_saved));
        assert_eq!(fs::read_to_string(paths.screens().join("b")).unwrap(), "shown");
        saver.remove_screen(&panes[0]);
        saver.finish(Instant::now() + DEADLINE);
        assert!(!paths.screens().join("a").exists());
    }
}
