//! What the kernel tells of processes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that names the directory of all processes that are started. Ringer's server passes on few others.
pub(crate) const MARK: &str = "HOME";

/// How long processes may take to be gone.
const END_WITHIN: Duration = Duration::from_secs(10);

/// All processes that were started in a directory, or in one below it.
pub(crate) fn started_in(directory: &Path) -> Vec<u32> {
    let mark = [MARK.as_bytes(), b"=", directory.as_os_str().as_bytes(), b"/"].concat();
    let pids = fs::read_dir("/proc").expect("Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&mark))
    })
    .collect()
}

/// Those of them whose arguments end with these.
pub(crate) fn with_arguments(directory: &Path, arguments: &[&str]) -> Vec<u32> {
    let ending: String = arguments.iter().flat_map(|argument| ["\0", argument]).chain(["\0"]).collect();
    let is_it = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(ending.as_bytes()))
    };
    started_in(directory).into_iter().filter(is_it).collect()
}

/// Ends all processes that were started in a directory.
pub(crate) fn end_all(directory: &Path) {
    let over = Instant::now() + END_WITHIN;
    loop {
        let pids = started_in(directory);
        if pids.is_empty() || Instant::now() > over {
            return;
        }
        for pid in pids.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The time in user and system mode, by clock ticks of 10 ms.
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// How often the threads of a process went to sleep, so also how often they were woken.
pub(crate) fn switches(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").flatten();
    let statuses = threads.map(|thread| thread.path().join("status"));
    statuses.map(|path| field_of(&path, "voluntary_ctxt_switches:")).sum()
}

/// The resident memory of a process, in megabytes.
pub(crate) fn resident(pid: u32) -> f64 {
    let kilobytes = field_of(Path::new(&format!("/proc/{pid}/status")), "VmRSS:");
    f64::from(u32::try_from(kilobytes).unwrap_or(u32::MAX)) / 1024.0
}

/// How many bytes a process has written, in megabytes.
pub(crate) fn written(pid: u32) -> f64 {
    let bytes = field_of(Path::new(&format!("/proc/{pid}/io")), "wchar:");
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) / 1024.0
}

fn field_of(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
