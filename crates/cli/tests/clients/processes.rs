//! What runs in an environment, according to the kernel: a client's hooks are not children of the test, so it cannot wait for them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::environment::DEADLINE;

/// Between two looks at what gives no sign when it changes.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The processes that have this home of Ringer's in their environment.
pub(crate) fn with_home(home: &Path) -> Vec<u32> {
    let home = format!("RINGER_HOME={}", home.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| words(*pid, "environ").contains(&home)).collect()
}

/// Whether a process is a hook call of Ringer's, or the shell that is about to become one.
pub(crate) fn is_hook(pid: u32) -> bool {
    let words = words(pid, "cmdline");
    words.get(1).is_some_and(|word| word == "hook")
        || words.iter().any(|word| word.ends_with("# ringer-hook"))
}

/// Whether a process is a hook that waits beside an open dialog.
pub(crate) fn waits_for_person(pid: u32) -> bool {
    let words = words(pid, "cmdline");
    words.get(1).is_some_and(|word| word == "hook")
        && words.get(3).is_some_and(|event| {
            matches!(event.as_str(), "PermissionRequest" | "permission.waiting" | "question.waiting")
        })
}

/// Whether a process is a hook that waits for messages while its session is idle.
pub(crate) fn waits_for_messages(pid: u32) -> bool {
    words(pid, "cmdline").get(1..4).is_some_and(|words| words == ["hook", "opencode", "session.waiting"])
}

/// Kills what has this home, and waits until it is gone: what dies may still write where the test cleans up.
pub(crate) fn end_all(home: &Path) {
    let start = Instant::now();
    let mut left = with_home(home);
    while !left.is_empty() && start.elapsed() < DEADLINE {
        left.into_iter().for_each(kill);
        thread::park_timeout(LOOK_EVERY);
        left = with_home(home);
    }
}

fn kill(pid: u32) {
    if let Some(process) = Pid::from_raw(pid.cast_signed()) {
        // It may have ended by itself.
        let _ = kill_process(process, Signal::KILL);
    }
}

fn words(pid: u32, file: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
