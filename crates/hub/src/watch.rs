//! File watches: when a file changes, a command runs, and what came of it is told.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_deliver::{Output, Program};
use ringer_term::sanitise_line;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::config::Watch;
use crate::input::Input;

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
        let (queue, directories) = queue(&watches)?;
        Some(Self { task: tokio::spawn(watch(watches, queue, directories, inputs)) })
    }
}

/// A queue that tells of changes in the directories of all files, and which number stands for which directory.
fn queue(watches: &[Watch]) -> Option<(AsyncFd<OwnedFd>, HashMap<i32, PathBuf>)> {
    let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
    // Editors replace a file rather than write it, so its directory is watched, and names are compared.
    let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::DELETE;
    let mut directories: HashMap<i32, PathBuf> = HashMap::new();
    for directory in watches.iter().flat_map(|watch| &watch.paths).filter_map(|path| path.parent()) {
        if let Ok(number) = inotify::add_watch(&queue, directory, flags) {
            directories.insert(number, directory.to_owned());
        }
    }
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
    )]
    let queue = AsyncFd::new(queue).ok()?;
    Some((queue, directories))
}

async fn watch(
    watches: Vec<Watch>,
    queue: AsyncFd<OwnedFd>,
    directories: HashMap<i32, PathBuf>,
    inputs: mpsc::Sender<Input>,
) {
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
            ready = queue.readable() => {
                let Ok(mut ready) = ready else { return };
                for path in changed(&queue, &directories) {
                    let hit = watches.iter().position(|watch| watch.paths.contains(&path));
                    if let Some(index) = hit {
                        due.insert(index, (path, Instant::now() + SETTLE));
                    }
                }
                ready.clear_ready();
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

/// The files that changed, as far as the queue tells.
fn changed(queue: &AsyncFd<OwnedFd>, directories: &HashMap<i32, PathBuf>) -> Vec<PathBuf> {
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(queue.get_ref(), &mut room);
    let mut paths = Vec::new();
    while let Ok(event) = reader.next() {
        // Some were lost: nothing can be said of them, and the next change will be seen.
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            continue;
        }
        if let (Some(directory), Some(name)) = (directories.get(&event.wd()), event.file_name()) {
            paths.push(directory.join(OsStr::from_bytes(name.to_bytes())));
        }
    }
    paths
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
