//! Sends commands to one kitty on a thread, so that a kitty that hangs does not block the host.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_journal::IdSource;

use crate::kitty::{KittyAddress, KittyError};
use crate::kitty_listing::Listing;

/// The shortest time between two listings. Titles with spinners change ten times a second, and a listing costs kitty up to ten
/// milliseconds.
const LIST_INTERVAL: Duration = Duration::from_millis(200);
/// The longest, while titles keep changing and the listing stays the same.
const MAX_LIST_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between focusing a window and listing, in which the desktop activates the OS window.
const ACTIVATION_TIME: Duration = Duration::from_millis(100);

/// A command to the worker.
#[derive(Debug)]
enum KittyCommand {
    /// List all windows soon.
    List {
        /// A title has changed, which may happen again and again.
        by_title: bool,
    },
    /// Mark the title of a window, or remove the mark.
    MarkTitle { window: u64, is_marked: bool },
    /// Go to a window.
    Focus { surface: SurfaceId, window: u64 },
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum KittyEvent {
    Listed {
        /// When it was requested, in milliseconds since 1970. The reply may have come much later.
        requested_ms: i64,
        listing: Result<Listing, KittyError>,
    },
    /// Titles could not be marked.
    MarkFailed(KittyError),
    /// A listing follows soon.
    Focused { surface: SurfaceId, result: Result<(), KittyError> },
}

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct KittyWorker {
    commands: Sender<KittyCommand>,
}

impl KittyWorker {
    pub(crate) fn start(address: KittyAddress, report: impl Fn(KittyEvent) + Send + 'static) -> Self {
        let (sender, commands) = channel();
        thread::spawn(move || work(&address, &commands, report));
        Self { commands: sender }
    }

    /// Lists all windows, at most five times a second.
    pub(crate) fn list(&self) {
        self.send(KittyCommand::List { by_title: false });
    }

    /// Like [`list`](Self::list), after the change of a title: less often while nothing else changes.
    pub(crate) fn list_after_title(&self) {
        self.send(KittyCommand::List { by_title: true });
    }

    pub(crate) fn focus(&self, surface: SurfaceId, window: u64) {
        self.send(KittyCommand::Focus { surface, window });
    }

    pub(crate) fn mark_title(&self, window: u64, is_marked: bool) {
        self.send(KittyCommand::MarkTitle { window, is_marked });
    }

    fn send(&self, command: KittyCommand) {
        // The thread ends only with this handle.
        let _ = self.commands.send(command);
    }
}

fn work(address: &KittyAddress, commands: &Receiver<KittyCommand>, report: impl Fn(KittyEvent)) {
    let mut last: Option<(Instant, Listing)> = None;
    let mut pause = LIST_INTERVAL;
    let mut due: Option<Instant> = None;
    // Titles to mark or unmark, by window id. They wait until all other commands are done.
    let mut marks: BTreeMap<u64, bool> = BTreeMap::new();
    loop {
        let command = match due {
            _ if !marks.is_empty() => commands.recv_timeout(Duration::ZERO),
            Some(at) => commands.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match command {
            Ok(KittyCommand::List { by_title }) => {
                if !by_title {
                    pause = LIST_INTERVAL;
                }
                let next = last.as_ref().map_or_else(Instant::now, |(at, _)| *at + pause);
                due = Some(due.map_or(next, |due| due.min(next)));
            }
            Ok(KittyCommand::MarkTitle { window, is_marked }) => drop(marks.insert(window, is_marked)),
            Ok(KittyCommand::Focus { surface, window }) => {
                let result = address.focus(window);
                due = Some(Instant::now() + ACTIVATION_TIME);
                report(KittyEvent::Focused { surface, result });
            }
            Err(RecvTimeoutError::Timeout) if due.is_none_or(|at| at > Instant::now()) => {
                if let Err(error) = address.mark_titles(&std::mem::take(&mut marks)) {
                    report(KittyEvent::MarkFailed(error));
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                due = None;
                let requested_ms = IdSource::now().unix_ms;
                let listing = address.list();
                let windows = listing.as_ref().ok().cloned().unwrap_or_default();
                let is_same = last.is_some_and(|(_, before)| before.has_same_windows(&windows));
                pause = if is_same { (pause * 2).min(MAX_LIST_INTERVAL) } else { LIST_INTERVAL };
                last = Some((Instant::now(), windows));
                report(KittyEvent::Listed { requested_ms, listing });
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
