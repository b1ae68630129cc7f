//! File watches: when a file changes, a command runs, and what came of it is told.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(any(not(target_os = "linux"), test))]
mod look;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_deliver::{Output, Program};
use ringer_term::sanitise_line;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::config::Watch;
use crate::input::Input;

#[cfg(target_os = "linux")]
use inotify::Changes;
#[cfg(not(target_os = "linux"))]
use look::Changes;

/// A file is often written in several steps; what follows within this belongs to one change.
const SETTLE: Duration = Duration::from_millis(200);
/// What a command may print; more of it is not told.
const MAX_OUTPUT: usize = 64 * 1024;

/// What came of a watch.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Which file changed.
    pub(crate) path: PathBuf,
    /// The command, as the person wrote it.
    pub(crate) command: String,
    /// The agent that is to be told.
    pub(crate) agent: Option<String>,
    /// What it printed, or why it failed.
    pub(crate) result: Result<String, String>,
}

/// Watches files until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    task: tokio::task::JoinHandle<()>,
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
        Some(Self { task: tokio::spawn(watch(watches, changes, inputs)) })
    }
}

async fn watch(watches: Vec<Watch>, mut changes: Changes, inputs: mpsc::Sender<Input>) {
    // Which watch has to run, for which file, and when.
    let mut due: HashMap<usize, (PathBuf, Instant)> = HashMap::new();
    loop {
        let next = due.values().map(|(_, at)| *at).min();
        let wait = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            paths = changes.next() => {
                let Some(paths) = paths else { return };
                for path in paths {
                    let hit = watches.iter().position(|watch| watch.paths.contains(&path));
                    if let Some(index) = hit {
                        due.insert(index, (path, Instant::now() + SETTLE));
                    }
                }
            }
            () = wait => {
                let now = Instant::now();
                let over: Vec<usize> =
                    due.iter().filter(|(_, (_, at))| *at <= now).map(|(index, _)| *index).collect();
                for index in over {
                    if let Some((path, _)) = due.remove(&index) {
                        let outcome = run(&watches[index], path).await;
                        if inputs.send(Input::Watched(outcome)).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

async fn run(watch: &Watch, path: PathBuf) -> Outcome {
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

impl Outcome {
    /// What the footer says of it.
    pub(crate) fn words(&self) -> String {
        let name = self.path.file_name().unwrap_or_else(|| Path::new("?").as_os_str()).to_string_lossy();
        let what = match &self.result {
            Ok(output) if output.is_empty() => format!("{} ran", self.command),
            Ok(output) => format!("{}: {}", self.command, output.lines().next().unwrap_or_default()),
            Err(why) => format!("{} failed: {why}", self.command),
        };
        sanitise_line(&format!("{name} changed; {what}"))
    }
}
