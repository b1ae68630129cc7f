//! Processes, as the kernel describes them: whose child, on which terminal, since when.

#[cfg(target_os = "macos")]
mod macos;

/// What is needed to know a process again and to find its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The process that started it.
    pub parent: u32,
    /// The process that leads its session.
    pub session: u32,
    /// The kernel's number for its controlling terminal; 0 without one.
    pub tty: u32,
    /// When it was started, in the kernel's unit: another process may have the same number by now.
    pub started: u64,
}

#[cfg(not(target_os = "macos"))]
impl ProcessStat {
    /// Of a process that runs, by its number or as `self`.
    pub fn of(pid: impl std::fmt::Display) -> Option<Self> {
        use std::io::Read;
        // One read: the line is shorter than this, and on the fast path every ancestor costs one.
        let mut line = [0; 1024];
        let length = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        Self::read(&String::from_utf8_lossy(&line[..length]))
    }

    fn read(line: &str) -> Option<Self> {
        // The name in parentheses may hold anything, so count from its end.
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            parent: fields.nth(1)?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
            tty: fields.next()?.parse::<i32>().ok()?.cast_unsigned(),
            started: fields.nth(14)?.parse().ok()?,
        })
    }
}

/// Whether a process is a server of tmux, by the name that tmux gives itself. Elsewhere than on Linux its parent is the first
/// process, so nothing above it matters.
pub(crate) fn is_tmux_server(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("tmux: server"))
}

/// When a process was started, if it runs.
pub(crate) fn started(pid: u32) -> Option<u64> {
    ProcessStat::of(pid).map(|stat| stat.started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn a_process_is_read_however_it_is_called() {
        let line = "7 (a ) b (c) S 5 7 6 34817 7 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = ProcessStat { parent: 5, session: 6, tty: 34_817, started: 4711 };
        assert_eq!(ProcessStat::read(line), Some(stat));
        for broken in ["", "7 (x", "7 (x) S", "7 (x) S 5"] {
            assert_eq!(ProcessStat::read(broken), None);
        }
    }

    #[test]
    fn this_process_is_the_same_by_name_and_by_number() {
        assert_eq!(ProcessStat::of("self"), ProcessStat::of(std::process::id()));
        assert!(started(std::process::id()).is_some());
    }
}
