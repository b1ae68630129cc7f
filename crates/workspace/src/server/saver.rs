//! What the next server will find, and what is on its way there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, wake_pair};

use crate::address::{Places, SESSION};
use crate::file_writer::{Directory, FileWriter};
use crate::layout::PaneId;
use crate::saved_session::SavedSession;

/// How long after a change the screens are saved.
const SAVE_AFTER: Duration = Duration::from_secs(1);
/// How long after a change of the session the next one may be saved. A border that is dragged changes it with each movement.
const SESSION_PAUSE: Duration = Duration::from_millis(10);
/// How long after a failure that is tried again, if nothing changes meanwhile.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// A screen was saved, or could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedScreen {
    pub(super) pane: PaneId,
    pub(super) is_saved: bool,
    /// Whether none of the others is saved any more.
    pub(super) is_only_one: bool,
}

/// Saves the session and the screens on threads of its own. The two are in different directories, and one of them may hang.
///
/// At most one screen and one session are in memory for each thread: what has changed meanwhile is saved after it, as it is then.
pub(super) struct Saver {
    screens: FileWriter,
    session: FileWriter,
    /// The threads have done something.
    woken: UnixStream,
    /// When to look for what has changed.
    look_at: Option<Instant>,
    /// When to look whether the session has changed, and when it had last.
    session_at: Option<Instant>,
    session_changed: Option<Instant>,
    /// Panes whose screens are saved next.
    unsaved: VecDeque<PaneId>,
    /// The session in the file, or on its way there.
    written: Option<SavedSession>,
    /// The session that comes after that.
    next: Option<SavedSession>,
}

impl Saver {
    pub(super) fn start(places: &Places) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let wakes = Arc::new(wakes);
        Ok(Self {
            screens: FileWriter::start(places.screens().to_owned(), Directory::Make, Arc::clone(&wakes))?,
            session: FileWriter::start(places.home().to_owned(), Directory::Exists, wakes)?,
            woken,
            look_at: None,
            session_at: None,
            session_changed: None,
            unsaved: VecDeque::new(),
            written: None,
            next: None,
        })
    }

    /// Becomes readable when [`Self::hear`] has something to do.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Something has changed.
    pub(super) fn save_soon(&mut self, now: Instant) {
        self.look_within(now, SAVE_AFTER);
    }

    /// The session may have changed by then, and is looked at, unless it had changed a moment ago.
    pub(super) fn save_session_at(&mut self, at: Instant) {
        let at = self.session_changed.map_or(at, |before| at.max(before + SESSION_PAUSE));
        self.session_at = Some(self.session_at.map_or(at, |before| before.min(at)));
    }

    /// Whether it is time to look whether the session has changed. It is not, after this.
    pub(super) fn take_session_due(&mut self, now: Instant) -> bool {
        self.session_at.take_if(|at| *at <= now).is_some()
    }

    fn look_within(&mut self, now: Instant, within: Duration) {
        let at = now + within;
        self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
    }

    /// When there is something to do, if nothing happens before.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let looks = self.look_at.into_iter().chain(self.session_at).min();
        if self.has_next_screen() { Some(now) } else { looks }
    }

    /// Whether it is time to look for what has changed. It is not, after this.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }

    /// These screens are to be saved.
    pub(super) fn add_screens(&mut self, panes: impl Iterator<Item = PaneId>) {
        for pane in panes {
            if !self.unsaved.contains(&pane) {
                self.unsaved.push_back(pane);
            }
        }
    }

    /// The panes whose screens are to be saved.
    pub(super) fn unsaved(&self) -> Vec<PaneId> {
        self.unsaved.iter().cloned().collect()
    }

    fn has_next_screen(&self) -> bool {
        !self.unsaved.is_empty() && self.screens.is_free()
    }

    /// The screen to save now, if the one before is written.
    pub(super) fn next_screen(&mut self) -> Option<PaneId> {
        if self.has_next_screen() { self.unsaved.pop_front() } else { None }
    }

    /// The same, and waits for the one before. The others stay unsaved when the time is over.
    pub(super) fn wait_for_next_screen(&mut self, until: Instant) -> Option<PaneId> {
        if self.screens.wait_until_free(until) { self.unsaved.pop_front() } else { None }
    }

    pub(super) fn save_screen(&self, pane: &PaneId, screen: String) {
        self.screens.replace(pane.as_str(), screen.into_bytes());
    }

    pub(super) fn remove_screen(&self, pane: &PaneId) {
        self.screens.remove(pane.as_str());
    }

    /// Whether the session that is saved has something for the hub.
    pub(super) fn has_unheard(&self) -> bool {
        self.newest().is_some_and(|session| !session.unheard.is_empty())
    }

    fn newest(&self) -> Option<&SavedSession> {
        self.next.as_ref().or(self.written.as_ref())
    }

    /// Saves a session, once the one before is written.
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

    /// Takes what the threads have done, and goes on with the session. Gives the screens among that.
    pub(super) fn hear(&mut self, now: Instant) -> Vec<SavedScreen> {
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

    /// Waits until the screens that were given are written, or the time is over.
    pub(super) fn wait_for_screens(&self, until: Instant) {
        self.screens.wait_until_free(until);
    }

    /// Waits until everything that was given is written, or the time is over.
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

    fn places() -> (tempfile::TempDir, Places) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        fs::create_dir(home.path()).unwrap();
        let places = Places::of(&home).unwrap();
        (directory, places)
    }

    fn session() -> SavedSession {
        let state = State::new(PaneKeys::default(), Box::new(String::new), Instant::now());
        SavedSession::of(&state, Vec::new())
    }

    #[test]
    fn a_session_that_could_not_be_written_is_tried_again_by_itself() {
        let (_directory, places) = places();
        fs::remove_dir(places.home()).unwrap();
        let mut saver = Saver::start(&places).unwrap();
        saver.save_session(session(), Instant::now());
        saver.finish(Instant::now() + DEADLINE);
        let now = Instant::now();
        assert_eq!(saver.hear(now), []);
        assert_eq!(saver.due(now), Some(now + TRY_AGAIN));
        fs::create_dir(places.home()).unwrap();
        assert!(saver.take_due(now + TRY_AGAIN));
        saver.save_session(session(), now);
        saver.finish(Instant::now() + DEADLINE);
        assert_eq!(SavedSession::read(&places.session()).unwrap(), Some(session()));
        saver.hear(now);
        assert_eq!(saver.due(now), None);
    }

    #[test]
    fn a_change_does_not_wait_for_the_next_try() {
        let (_directory, places) = places();
        let (mut saver, now) = (Saver::start(&places).unwrap(), Instant::now());
        saver.look_within(now, TRY_AGAIN);
        saver.save_soon(now);
        assert_eq!(saver.due(now), Some(now + SAVE_AFTER));
        saver.save_soon(now + SAVE_AFTER / 2);
        assert_eq!(saver.due(now), Some(now + SAVE_AFTER), "the first change counts");
    }

    #[test]
    fn a_session_that_may_have_changed_is_saved_at_once_but_not_all_the_time() {
        let (_directory, places) = places();
        let (mut saver, now) = (Saver::start(&places).unwrap(), Instant::now());
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
        let (_directory, places) = places();
        let mut saver = Saver::start(&places).unwrap();
        let panes = ["a", "b", "a"].map(PaneId::new);
        saver.add_screens(panes.iter().cloned());
        let mut heard = Vec::new();
        until("both are saved", || {
            if let Some(pane) = saver.next_screen() {
                saver.save_screen(&pane, "shown".to_owned());
            }
            heard.extend(saver.hear(Instant::now()));
            heard.len() == 2
        });
        assert!(heard.iter().all(|screen| screen.is_saved));
        assert_eq!(fs::read_to_string(places.screens().join("b")).unwrap(), "shown");
        saver.remove_screen(&panes[0]);
        saver.finish(Instant::now() + DEADLINE);
        assert!(!places.screens().join("a").exists());
    }
}
