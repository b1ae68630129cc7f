//! File watches: when a file changes, a command runs, and what came of it is told.

#[cfg(target_os = "linux")]
mod inotify;
mod outcome;
#[cfg(any(not(target_os = "linux"), test))]
mod poll;

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringer_deliver::{Output, Program};
use ringer_term::sanitise_line;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::input::Input;
use crate::message::LoopEvent;
use ringer_config::Watch;

#[cfg(target_os = "linux")]
use inotify::Changes;
pub(crate) use outcome::Outcome;
#[cfg(not(target_os = "linux"))]
use poll::Changes;

/// A file is often written in several steps; what follows within this belongs to one change.
const SETTLE: Duration = Duration::from_millis(200);
/// What a command may print; more of it is not told.
const MAX_OUTPUT: usize = 64 * 1024;

/// Watches files until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    watches: Vec<Watch>,
    next: Arc<Next>,
    task: tokio::task::JoinHandle<()>,
}

/// Other watches, on their way to the task.
#[derive(Debug, Default)]
struct Next {
    list: Mutex<Option<(Vec<Watch>, Changes)>>,
    is_there: Notify,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watcher {
    /// Begins to watch: from here on no change is missed. Inside a tokio runtime. `None` where the system cannot.
    pub(crate) fn begin(watches: Vec<Watch>, inputs: mpsc::Sender<Input>) -> Option<Self> {
        let changes = Changes::begin(watches.iter().flat_map(|watch| &watch.paths))?;
        let next = Arc::new(Next::default());
        let files = Files { watches: watches.clone(), changes, due: HashMap::new(), running: None };
        let task = tokio::spawn(files.watch(Arc::clone(&next), inputs));
        Some(Self { watches, next, task })
    }

    /// Watches these instead. A watch that is among them as before goes on: its command is let run, and no change of its
    /// files is missed. A command of any other is ended. `None` where the system cannot: then nothing is watched.
    pub(crate) fn set(mut self, watches: Vec<Watch>) -> Option<Self> {
        if watches != self.watches {
            let changes = Changes::begin(watches.iter().flat_map(|watch| &watch.paths))?;
            self.watches.clone_from(&watches);
            *self.next.list.lock().unwrap_or_else(PoisonError::into_inner) = Some((watches, changes));
            self.next.is_there.notify_one();
        }
        Some(self)
    }
}

/// A command that runs.
type Command = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What is watched, and what has to run because of it.
struct Files {
    watches: Vec<Watch>,
    changes: Changes,
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
            tokio::select! {
                // Other watches come first: what is no longer trusted must not begin.
                biased;
                () = next.is_there.notified() => {
                    let list = next.list.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some((watches, changes)) = list {
                        self.set(watches, changes);
                    }
                }
                paths = self.changes.next() => {
                    let Some(paths) = paths else { return };
                    self.changed(paths);
                }
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

    fn set(&mut self, watches: Vec<Watch>, mut changes: Changes) {
        std::mem::swap(&mut self.changes, &mut changes);
        let last = self.changes.take_over(&changes);
        let index = |own: &Watch| watches.iter().position(|watch| watch == own);
        let due = self.due.drain().filter_map(|(own, due)| Some((index(self.watches.get(own)?)?, due)));
        let due = due.collect();
        self.running = self.running.take().filter(|(watch, _)| index(watch).is_some());
        (self.watches, self.due) = (watches, due);
        self.changed(last);
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

async fn run(watch: Watch, path: PathBuf) -> Outcome {
    let program = Program {
        argv: watch.command.clone(),
        directory: watch.working_directory().to_owned(),
        environment: vec![("RINGER_WATCH_PATH".to_owned(), path.to_string_lossy().into_owned())],
        input: Vec::new(),
        output: Output::Kept { most: MAX_OUTPUT },
        timeout: watch.timeout,
    };
    let result = program.run().await.into_result(watch.timeout);
    Outcome {
        command: sanitise_line(&watch.command.join(" ")),
        agent: watch.agent.clone(),
        result: result.map(|output| String::from_utf8_lossy(&output).trim().to_owned()),
        path,
    }
}
