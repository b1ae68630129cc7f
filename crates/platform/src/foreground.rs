use std::os::unix::net::UnixStream;

/// Whether the process behind a socket may use its terminal: a shell takes it back from a job that is stopped or in the
/// background.
#[derive(Debug)]
pub struct ForegroundCheck {
    #[cfg(target_os = "linux")]
    pid: rustix::process::Pid,
}

impl ForegroundCheck {
    /// The process behind a socket. `None` where that is not known, as for one in a container.
    #[cfg(target_os = "linux")]
    pub fn of_peer(stream: &UnixStream) -> Option<Self> {
        let pid = rustix::net::sockopt::socket_peercred(stream).ok()?.pid;
        (pid.as_raw_nonzero().get() > 0).then_some(Self { pid })
    }

    /// The process behind a socket. Only Linux tells.
    #[cfg(not(target_os = "linux"))]
    pub fn of_peer(_: &UnixStream) -> Option<Self> {
        None
    }

    /// Whether it runs, and its terminal is with it.
    #[cfg(target_os = "linux")]
    pub fn has_terminal(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| is_in_foreground(&stat))
    }

    /// Whether it runs, and its terminal is with it.
    #[cfg(not(target_os = "linux"))]
    pub fn has_terminal(&self) -> bool {
        false
    }
}

/// Reads `/proc/PID/stat`: behind the name are the state, the parent, the group, the session, the terminal, and the group that
/// the terminal is with.
#[cfg(target_os = "linux")]
fn is_in_foreground(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = rest.split_whitespace().take(6).collect();
    let [state, _parent, group, _session, _terminal, foreground] = fields[..] else { return false };
    !matches!(state, "T" | "t" | "Z" | "X") && group == foreground
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_stopped_or_in_the_background_is_not_there() {
        assert!(is_in_foreground("7 (a ) b) S 1 7 5 34816 7 4194304 1"));
        assert!(!is_in_foreground("7 (sh) S 1 7 5 34816 9 4194304 1"));
        assert!(!is_in_foreground("7 (sh) T 1 7 5 34816 7 4194304 1"));
        assert!(!is_in_foreground("7 (sh"));
    }

    #[test]
    fn the_process_behind_a_socket_is_known() {
        let (one, _two) = UnixStream::pair().unwrap();
        // Whether the tests have a terminal is not.
        let _ = ForegroundCheck::of_peer(&one).unwrap().has_terminal();
    }
}
