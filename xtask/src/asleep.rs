//! Detects that a process is blocked and idle, from its state in `/proc`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How many consecutive samples must agree: a process also sleeps briefly while it works.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(1);

/// The context switches of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Activity {
    /// How often it went to sleep, and so how often it was woken.
    pub(crate) voluntary: u64,
    /// How often it was preempted.
    pub(crate) involuntary: u64,
    sleeps: bool,
}

impl Activity {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }
}

fn parse(status: &str) -> Option<Activity> {
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    Some(Activity {
        voluntary: field("voluntary_ctxt_switches")?.parse().ok()?,
        involuntary: field("nonvoluntary_ctxt_switches")?.parse().ok()?,
        sleeps: field("State")?.starts_with('S'),
    })
}

/// Waits until a process sleeps while it has a FIFO below a folder open. Returns false if it ended or the deadline passed.
pub(crate) fn at_fifo(pid: u32, folder: &Path, deadline: Instant) -> bool {
    let mut last = None;
    let mut looks = 0;
    while looks < LOOKS {
        let Some(activity) = Activity::of(pid) else { return false };
        if Instant::now() >= deadline {
            return false;
        }
        let rests = activity.sleeps && last == Some(activity) && holds_fifo(pid, folder);
        looks = if rests { looks + 1 } else { 0 };
        last = Some(activity);
        thread::sleep(PAUSE);
    }
    true
}

fn holds_fifo(pid: u32, folder: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|entry| {
        let is_below = fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(folder));
        is_below && fs::metadata(entry.path()).is_ok_and(|meta| meta.file_type().is_fifo())
    })
}

#[cfg(test)]
mod tests {
    use super::{Activity, at_fifo, parse};
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn the_kernels_words() {
        let status = "Name:\tringer\nState:\tS (sleeping)\nVmRSS:\t  5 kB\n\
                      voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse(status), Some(Activity { voluntary: 12, involuntary: 3, sleeps: true }));
        let running = status.replace("S (sleeping)", "R (running)");
        assert_eq!(parse(&running).map(|activity| activity.sleeps), Some(false));
        assert_eq!(parse("Name:\tringer\n"), None);
    }

    #[test]
    fn who_holds_no_fifo_does_not_wait_at_one() {
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(!at_fifo(std::process::id(), Path::new("/nowhere"), soon));
        assert!(
            !at_fifo(u32::MAX, Path::new("/"), Instant::now() + Duration::from_mins(1)),
            "it does not exist"
        );
    }
}
