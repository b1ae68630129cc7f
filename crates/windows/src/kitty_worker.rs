//! Asks one kitty, on a thread of its own: it may hang, and what else the host does goes on.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_journal::IdSource;

use crate::kitty::{KittyAddress, KittyError};
use crate::kitty_listing::Listing;

/// The shortest time between two questions. Titles with spinners change ten times a second, and an answer costs kitty up to
/// ten milliseconds.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// The longest, while title after title changes and the answer stays the same.
const ASK_EVERY_AT_LEAST: Duration = Duration::from_secs(1);
/// How long after going to a window its kitty is asked whether the person is there: the desktop activates it meanwhile.
const ACTIVATES_WITHIN: Duration = Duration::from_millis(100);

/// What is asked of kitty.
#[derive(Debug)]
enum Question {
    /// All windows, soon.
    List {
        /// Whether it is because of a title, which may change again and again.
        by_title: bool,
    },
    /// To mark the title of a window, or to take the mark away.
    MarkTitle { window: u64, is_marked: bool },
    /// To go to a window.
    Focus { surface: SurfaceId, window: u64 },
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum KittyNews {
    Listed {
        /// When it was asked, in milliseconds since 1970. It may have taken its time.
        asked_ms: i64,
        listed: Result<Listing, KittyError>,
    },
    /// Titles could not be marked.
    NotMarked(KittyError),
    /// Its windows are listed soon after it.
    Focused { surface: SurfaceId, result: Result<(), KittyError> },
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct KittyWorker {
    questions: Sender<Question>,
}

impl KittyWorker {
    pub(crate) fn start(address: KittyAddress, tell: impl Fn(KittyNews) + Send + 'static) -> Self {
        let (questions, asked) = channel();
        thread::spawn(move || work(&address, &asked, tell));
        Self { questions }
    }

    /// Asks for all windows, at most five times a second.
    pub(crate) fn list(&self) {
        self.ask(Question::List { by_title: false });
    }

    /// The same because a title changed.
    pub(crate) fn list_after_title(&self) {
        self.ask(Question::List { by_title: true });
    }

    pub(crate) fn focus(&self, surface: SurfaceId, window: u64) {
        self.ask(Question::Focus { surface, window });
    }

    pub(crate) fn mark_title(&self, window: u64, is_marked: bool) {
        self.ask(Question::MarkTitle { window, is_marked });
    }

    fn ask(&self, question: Question) {
        // Without its thread there is no answer; it ends only with this.
        let _ = self.questions.send(question);
    }
}

fn work(address: &KittyAddress, asked: &Receiver<Question>, tell: impl Fn(KittyNews)) {
    let mut last: Option<(Instant, Listing)> = None;
    let mut pause = ASK_EVERY;
    let mut due: Option<Instant> = None;
    // Titles to be marked or not, by the numbers of the windows. They can wait until all other questions are answered.
    let mut marks: BTreeMap<u64, bool> = BTreeMap::new();
    loop {
        let question = match due {
            _ if !marks.is_empty() => asked.recv_timeout(Duration::ZERO),
            Some(at) => asked.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match question {
            Ok(Question::List { by_title }) => {
                if !by_title {
                    pause = ASK_EVERY;
                }
                let next = last.as_ref().map_or_else(Instant::now, |(at, _)| *at + pause);
                due = Some(due.map_or(next, |due| due.min(next)));
            }
            Ok(Question::MarkTitle { window, is_marked }) => drop(marks.insert(window, is_marked)),
            Ok(Question::Focus { surface, window }) => {
                let result = address.focus(window);
                due = Some(Instant::now() + ACTIVATES_WITHIN);
                tell(KittyNews::Focused { surface, result });
            }
            Err(RecvTimeoutError::Timeout) if due.is_none_or(|at| at > Instant::now()) => {
                if let Err(error) = address.mark_titles(&std::mem::take(&mut marks)) {
                    tell(KittyNews::NotMarked(error));
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                due = None;
                let asked_ms = IdSource::now().unix_ms;
                let listed = address.list();
                let listing = listed.as_ref().ok().cloned().unwrap_or_default();
                let is_same = last.is_some_and(|(_, before)| before.has_same_windows(&listing));
                pause = if is_same { (pause * 2).min(ASK_EVERY_AT_LEAST) } else { ASK_EVERY };
                last = Some((Instant::now(), listing));
                tell(KittyNews::Listed { asked_ms, listed });
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
