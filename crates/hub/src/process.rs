//! Waits for the end of processes that are not children of the hub.

use std::os::fd::OwnedFd;
use std::time::Duration;

use ringer_journal::ProcessStat;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Polling interval where the system cannot report the end of a process.
const LOOK_EVERY: Duration =
    if cfg!(target_os = "linux") { Duration::from_mins(1) } else { Duration::from_secs(10) };

/// Waits until the process that started at `started` has ended.
pub(crate) async fn ended(pid: u32, started: u64) {
    let handle = open_pidfd(pid);
    // Checked after opening the handle: pids are reused, so the handle could belong to another process.
    if began(pid) != Some(started) {
        return;
    }
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
    )]
    let handle = handle.and_then(|handle| AsyncFd::with_interest(handle, Interest::READABLE).ok());
    match handle {
        Some(handle) => {
            let _ = handle.readable().await;
        }
        None => {
            while began(pid) == Some(started) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
}

/// A pidfd, which becomes readable when the process ends.
#[cfg(target_os = "linux")]
fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    number.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok())
}

/// Other systems have no pidfd, so the process is polled.
#[cfg(not(target_os = "linux"))]
fn open_pidfd(_pid: u32) -> Option<OwnedFd> {
    None
}

/// The start of a process in clock ticks.
fn began(pid: u32) -> Option<u64> {
    ProcessStat::of(pid).map(|stat| stat.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn the_end_of_a_process_is_told_and_a_stranger_is_not_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let started = began(pid).unwrap();
        ended(pid, started + 1).await;
        let waiting = tokio::spawn(ended(pid, started));
        drop(child.stdin.take());
        let deadline = Duration::from_secs(30);
        tokio::time::timeout(deadline, waiting).await.unwrap().unwrap();
        child.wait().unwrap();
        ended(pid, started).await;
    }
}
