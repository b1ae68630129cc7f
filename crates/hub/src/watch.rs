//! File watches: run a command when a file changes, and report its result.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(any(not(target_os = "linux"), test))]
mod poll;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringer_config::Watch;
use ringer_deliver::{Output, Program};
use ringer_term::sanitise_line;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::message::{Input, LoopEvent, WatchOutcome};

#[cfg(target_os = "linux")]
pub(crate) use inotify::Changes;
#[cfg(not(target_os = "linux"))]
use poll::Changes;

/// A file is often written in several steps. Changes within this time count as one.
const SETTLE: Duration = Duration::from_millis(200);
/// The most output of a command, in bytes. The rest is cut off.
const MAX_OUTPUT: usize = 64 * 1024;

/// How long the loop waits until files are watched, so that no later change is missed. This takes microseconds, unless a
/// directory hangs. That directory is watched once it answers, and the loop does not wait again while it hangs.
const START_WITHIN: Duration = Duration::from_millis(250);
/// The most threads that hang on directories. Then no other watch starts until one of them returns.
const MAX_HUNG: usize = 8;

/// Watches files until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    next: Arc<Next>,
    task: tokio::task::JoinHandle<()>,
}

/// New watches for the task.
#[derive(Debug, Default)]
struct Next {
    shared: Mutex<Shared>,
    is_there: Notify,
}

#[derive(Debug, Default)]
struct Shared {
    /// The files to watch. `revision` counts how often they were set.
    watches: Vec<Watch>,
    revision: u64,
    /// The revision whose files the system watches.
    asked: u64,
    /// A new source of changes, for the task to take.
    changes: Option<Changes>,
    /// Threads that are setting up a source of changes.
    asking: usize,
}

impl Next {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watcher {
    /// Starts to watch. Must be called inside a tokio runtime.
    pub(crate) fn begin(watches: Vec<Watch>, inputs: mpsc::Sender<Input>) -> Self {
        let next = Arc::new(Next::default());
        let task = tokio::spawn(Files::default().watch(Arc::clone(&next), inputs));
        Self { next, task }.set(watches)
    }

    /// Replaces the watches. A watch that stays continues: its command keeps running, and no change of its files is missed. The
    /// commands of removed watches are killed. No change after the return of this call is missed, unless a directory hangs.
    pub(crate) fn set(self, watches: Vec<Watch>) -> Self {
        let mut shared = self.next.lock();
        if watches == shared.watches {
            drop(shared);
            return self;
        }
        shared.watches = watches;
        shared.revision += 1;
        let (may_ask, hangs) = (shared.asking < MAX_HUNG, shared.asking > 0);
        shared.asking += usize::from(may_ask);
        drop(shared);
        self.next.is_there.notify_one();
        if may_ask {
            let (next, (asked, answer)) = (Arc::clone(&self.next), std::sync::mpsc::channel());
            // On a thread, because a directory may be on a file system that hangs. The old watches go on meanwhile.
            tokio::task::spawn_blocking(move || {
                next.ask();
                let _ = asked.send(());
            });
            if !hangs {
                let _ = answer.recv_timeout(START_WITHIN);
            }
        }
        self
    }
}

impl Next {
    /// Sets up sources of changes until one covers the latest revision.
    fn ask(&self) {
        let mut shared = self.lock();
        while shared.asked != shared.revision {
            let (watches, revision) = (shared.watches.clone(), shared.revision);
            drop(shared);
            let changes = Changes::begin(watches.iter().flat_map(|watch| &watch.paths));
            shared = self.lock();
            if shared.revision == revision {
                shared.asked = revision;
                shared.changes = changes;
            }
        }
        shared.asking -= 1;
        drop(shared);
        self.is_there.notify_one();
    }
}

/// A running command.
type Command = Pin<Box<dyn Future<Output = WatchOutcome> + Send>>;

/// The watched files, and the commands to run.
#[derive(Default)]
struct Files {
    watches: Vec<Watch>,
    /// `None` until the system watches the files, or if it cannot.
    changes: Option<Changes>,
    /// Pending runs by watch, each with the changed file and its time.
    due: HashMap<usize, (PathBuf, Instant)>,
    /// The running command and its watch. Commands run one by one.
    running: Option<(Watch, Command)>,
}

impl Files {
    async fn watch(mut self, next: Arc<Next>, inputs: mpsc::Sender<Input>) {
        loop {
            let due = self.due.values().map(|(_, at)| *at).min().filter(|_| self.running.is_none());
            let wait = async {
                match due {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let running = async {
                match &mut self.running {
                    Some((_, command)) => command.await,
                    None => std::future::pending().await,
                }
            };
            let told = async {
                match &mut self.changes {
                    Some(changes) => changes.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // New watches come first: a command that is no longer trusted must not start.
                biased;
                () = next.is_there.notified() => {
                    let mut shared = next.lock();
                    let (watches, changes) = (shared.watches.clone(), shared.changes.take());
                    drop(shared);
                    if watches != self.watches {
                        self.set(watches);
                    }
                    if let Some(changes) = changes {
                        self.listen(changes);
                    }
                }
                paths = told => match paths {
                    Some(paths) => self.changed(paths),
                    None => self.changes = None,
                },
                outcome = running => {
                    self.running = None;
                    if inputs.send(Input::Event(LoopEvent::WatchFinished(outcome))).await.is_err() {
                        return;
                    }
                }
                () = wait => self.run_next(),
            }
        }
    }

    fn set(&mut self, watches: Vec<Watch>) {
        let index = |own: &Watch| watches.iter().position(|watch| watch == own);
        let due = self.due.drain().filter_map(|(own, due)| Some((index(self.watches.get(own)?)?, due)));
        let due = due.collect();
        self.running = self.running.take().filter(|(watch, _)| index(watch).is_some());
        (self.watches, self.due) = (watches, due);
    }

    /// Replaces the source of changes. Changes that the old one has not reported yet are not lost.
    fn listen(&mut self, mut changes: Changes) {
        let last = self.changes.take().map(|before| changes.take_over(&before));
        self.changes = Some(changes);
        self.changed(last.unwrap_or_default());
    }

    /// Schedules every watch of these files.
    fn changed(&mut self, paths: Vec<PathBuf>) {
        let at = Instant::now() + SETTLE;
        for path in paths {
            for (index, _) in self.watches.iter().enumerate().filter(|(_, watch)| watch.paths.contains(&path))
            {
                self.due.insert(index, (path.clone(), at));
            }
        }
    }

    /// Starts the command that has been due the longest.
    fn run_next(&mut self) {
        let first = self.due.iter().min_by_key(|(index, (_, at))| (*at, **index)).map(|(index, _)| *index);
        if let Some(index) = first
            && let Some((path, _)) = self.due.remove(&index)
            && let Some(watch) = self.watches.get(index).cloned()
        {
            let command = run(watch.clone(), path);
            self.running = Some((watch, Box::pin(command)));
        }
    }
}

async fn run(watch: Watch, path: PathBuf) -> WatchOutcome {
    let program = Program {
        argv: watch.command.clone(),
        directory: watch.working_directory().to_owned(),
        environment: vec![("RINGER_WATCH_PATH".to_owned(), path.to_string_lossy().into_owned())],
        input: Vec::new(),
        output: Output::Captured { limit: MAX_OUTPUT },
        timeout: watch.timeout,
    };
    let result = program.run().await.into_result(watch.timeout);
    WatchOutcome {
        command: sanitise_line(&watch.command.join(" ")),
        agent: watch.agent.clone(),
        result: result.map(|output| String::from_utf8_lossy(&output).trim().to_owned()),
        path,
    }
}
