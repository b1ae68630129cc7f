//! File watches: when a file changes, a command runs, and what came of it is told.

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

/// A file is often written in several steps; what follows within this belongs to one change.
const SETTLE: Duration = Duration::from_millis(200);
/// What a command may print; more of it is not told.
const MAX_OUTPUT: usize = 64 * 1024;

/// How long the loop waits until files are watched, so that no change after that is missed. It takes microseconds, unless a
/// directory hangs; that one is watched when it answers, and as long as it hangs the loop does not wait again.
const START_WITHIN: Duration = Duration::from_millis(250);
/// Threads that may hang at directories. With more, other watches do not begin until one of them answers.
const MAX_HUNG: usize = 8;

/// Watches files until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    next: Arc<Next>,
    task: tokio::task::JoinHandle<()>,
}

/// Other watches, on their way to the task.
#[derive(Debug, Default)]
struct Next {
    shared: Mutex<Shared>,
    is_there: Notify,
}

#[derive(Debug, Default)]
struct Shared {
    /// What is to be watched, and how often that was set.
    watches: Vec<Watch>,
    revision: u64,
    /// The revision for which the system was asked to tell of changes.
    asked: u64,
    /// What the system tells, for the task to take.
    changes: Option<Changes>,
    /// Threads that are asking.
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
    /// Begins to watch. Inside a tokio runtime.
    pub(crate) fn begin(watches: Vec<Watch>, inputs: mpsc::Sender<Input>) -> Self {
        let next = Arc::new(Next::default());
        let task = tokio::spawn(Files::default().watch(Arc::clone(&next), inputs));
        Self { next, task }.set(watches)
    }

    /// Watches these instead. A watch that is among them as before goes on: its command is let run, and no change of its
    /// files is missed. A command of any other is ended. When this returns, no change is missed from then on, unless a
    /// directory hangs.
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
            // On a thread: a directory may be on a file system that hangs. The watches of before go on meanwhile.
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
    /// Asks the system to tell of changes, until it was asked about what is to be watched by then.
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

/// A command that runs.
type Command = Pin<Box<dyn Future<Output = WatchOutcome> + Send>>;

/// What is watched, and what has to run because of it.
#[derive(Default)]
struct Files {
    watches: Vec<Watch>,
    /// `None` as long as the system has not been asked to tell of changes, or cannot.
    changes: Option<Changes>,
    /// Which watch has to run, for which file, and when.
    due: HashMap<usize, (PathBuf, Instant)>,
    /// The command under way, and the watch it is of. They run one after the other.
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
                // Other watches come first: what is no longer trusted must not begin.
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

    /// The system tells of changes of these watches' files from now on. What it had not told of the others is not missed.
    fn listen(&mut self, mut changes: Changes) {
        let last = self.changes.take().map(|before| changes.take_over(&before));
        self.changes = Some(changes);
        self.changed(last.unwrap_or_default());
    }

    /// Every watch of a file has to run.
    fn changed(&mut self, paths: Vec<PathBuf>) {
        let at = Instant::now() + SETTLE;
        for path in paths {
            for (index, _) in self.watches.iter().enumerate().filter(|(_, watch)| watch.paths.contains(&path))
            {
                self.due.insert(index, (path.clone(), at));
            }
        }
    }

    /// Begins what has been due for the longest time.
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
