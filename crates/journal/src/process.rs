//! Processes as the kernel describes them: parent, terminal, start time; and the terminal that a process runs in.

#[cfg(target_os = "macos")]
mod macos;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
#[cfg(target_os = "linux")]
use std::path::Path;

use ringer_core::message::{SurfaceId, TtySurface};

/// Identifies a process across PID reuse and names its terminal. The fields are those of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Parent process.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session leader.
    pub session: u32,
    /// Device number of the controlling terminal; 0 without one.
    pub tty: u32,
    /// Foreground process group of that terminal; -1 without one.
    pub foreground_group: i32,
    /// Start time in the kernel's unit. Together with the PID it identifies the process: PIDs are reused.
    pub started: u64,
}

impl ProcessStat {
    /// Returns true if the process is in the foreground of its terminal.
    pub fn is_in_foreground(&self) -> bool {
        self.tty != 0 && u32::try_from(self.foreground_group) == Ok(self.group)
    }
}

#[cfg(not(target_os = "macos"))]
impl ProcessStat {
    /// Reads a running process by its PID or as `self`.
    pub fn of(pid: impl std::fmt::Display) -> Option<Self> {
        Self::read(&stat_line(pid)?)
    }

    fn read(line: &str) -> Option<Self> {
        // The name in parentheses may contain anything, including parentheses: count from its end.
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            parent: fields.nth(1)?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            tty: fields.next()?.parse::<i32>().ok()?.cast_unsigned(),
            foreground_group: fields.next()?.parse().ok()?,
            started: fields.nth(13)?.parse().ok()?,
        })
    }
}

/// `/proc/PID/stat` of a process.
#[cfg(not(target_os = "macos"))]
fn stat_line(pid: impl std::fmt::Display) -> Option<String> {
    use std::io::Read;
    // A single read: the line is shorter than the buffer, and on the fast path every ancestor costs one.
    let mut line = [0; 1024];
    let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    Some(String::from_utf8_lossy(&line[..length]).into_owned())
}

/// The start time of a process; `None` if it is not running.
pub(crate) fn started(pid: u32) -> Option<u64> {
    ProcessStat::of(pid).map(|stat| stat.started)
}

/// Returns true if two processes are known to run different programs. Versions of one program count as the same.
#[cfg(target_os = "linux")]
pub fn run_different_programs(one: u32, other: u32) -> bool {
    let program = |pid| fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(one).zip(program(other)).is_some_and(|(one, other)| !are_versions_of_one(&one, &other))
}

/// Not implemented on this system.
#[cfg(not(target_os = "linux"))]
pub fn run_different_programs(_: u32, _: u32) -> bool {
    false
}

/// Returns true if two files have the same name, or are numbered versions in one directory, as an updater keeps them: Claude
/// Code's `versions/2.1.0`.
#[cfg(target_os = "linux")]
fn are_versions_of_one(one: &Path, other: &Path) -> bool {
    // The kernel appends this if the file was removed after the program started.
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
    };
    let is_number = |name: &str| name.starts_with(|first: char| first.is_ascii_digit());
    let (one_name, other_name) = (name(one), name(other));
    one_name == other_name || is_number(&one_name) && is_number(&other_name) && one.parent() == other.parent()
}

/// Returns true if a process was killed and is about to exit. Until its last thread is gone, its files stay open and its locks
/// held.
#[cfg(target_os = "linux")]
pub(crate) fn is_ending(pid: u32, started: Option<u64>) -> bool {
    // In another PID namespace, such as a sandbox's, the PID belongs to another process, or to none.
    stat_line(pid).is_some_and(|line| is_same_and_ending(&line, started) == Some(true))
}

/// The kernel does not report it on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_ending(_: u32, _: Option<u64>) -> bool {
    false
}

/// Returns true if a `/proc/PID/stat` line describes a process that is exiting or has a pending SIGKILL. `None` if its start time
/// differs.
#[cfg(target_os = "linux")]
fn is_same_and_ending(stat: &str, started: Option<u64>) -> Option<bool> {
    /// `PF_EXITING`.
    const EXITING: u32 = 4;
    const KILL: u64 = 1 << 8;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let (state, flags, own) = (*fields.first()?, fields.get(6)?.parse::<u32>().ok()?, fields.get(19)?);
    // Pending signals of the first thread. A fatal signal is sent to every thread as SIGKILL.
    let signals = fields.get(28)?.parse::<u64>().ok()?;
    let ends = matches!(state, "Z" | "X" | "x") || flags & EXITING != 0 || signals & KILL != 0;
    (own.parse().ok() == started).then_some(ends)
}

/// How many ancestors are searched for a terminal. Between a hook and the terminal there are an agent, its shell and a few
/// wrappers.
const MAX_TERMINAL_ANCESTORS: usize = 32;

/// A terminal, identified by its device and the start time of its session leader: devices are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllingTerminal {
    /// Device path.
    pub tty: String,
    /// Start time of the session leader, in the kernel's unit.
    pub leader_started: u64,
    /// Parent of the session leader.
    pub leader_parent: u32,
}

impl ControllingTerminal {
    /// The terminal of a process (a PID or `self`), or of its nearest ancestor that has one.
    pub fn of(pid: impl std::fmt::Display) -> Option<Self> {
        let mut stat = ProcessStat::of(pid)?;
        for _ in 0..MAX_TERMINAL_ANCESTORS {
            if let Some(tty) = device_path(stat.tty) {
                let leader = ProcessStat::of(stat.session)?;
                return Some(Self { tty, leader_started: leader.started, leader_parent: leader.parent });
            }
            if stat.parent <= 1 {
                return None;
            }
            stat = ProcessStat::of(stat.parent)?;
        }
        None
    }

    /// The id of the terminal's surface.
    pub fn surface(&self) -> String {
        TtySurface { tty: &self.tty, leader_started: self.leader_started }.id().to_string()
    }
}

/// Maps a device number to a path: pseudo-terminals and consoles.
#[cfg(not(target_os = "macos"))]
fn device_path(number: u32) -> Option<String> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        4 => Some(format!("/dev/tty{minor}")),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// Maps a device number to a path: pseudo-terminals, the only terminals on macOS.
#[cfg(target_os = "macos")]
fn device_path(number: u32) -> Option<String> {
    let path = format!("/dev/ttys{:03}", number & 0xff_ffff);
    fs::metadata(&path).ok().filter(|device| device.rdev() == u64::from(number)).map(|_| path)
}

/// The leader of a terminal's session. The terminal emulator started it, so its environment identifies the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLeader {
    /// Its PID.
    pub pid: u32,
    /// Its parent, usually the terminal emulator.
    pub parent: u32,
}

/// Why the leader of a terminal's session is unknown.
#[derive(Debug)]
pub enum SessionLeaderError {
    /// The device does not exist.
    NoDevice(io::Error),
    /// The terminal was closed.
    Unused,
    /// The device was reused by another terminal.
    OtherTerminal,
    /// The system does not report it (macOS).
    Unknown,
}

impl SessionLeaderError {
    /// The error as a sentence about the device.
    pub fn words(&self, tty: &str) -> String {
        match self {
            Self::NoDevice(error) => format!("{tty} cannot be used: {error}"),
            Self::Unused => format!("{tty} is no longer used by any process"),
            Self::OtherTerminal => format!("{tty} is now another terminal"),
            Self::Unknown => format!("{tty}: macOS does not tell which terminal that is"),
        }
    }
}

impl SessionLeader {
    /// Finds the session leader on a device. Fails if another terminal uses the device by now.
    pub fn of(surface: &SurfaceId, tty: &str) -> Result<Self, SessionLeaderError> {
        if cfg!(target_os = "macos") {
            return Err(SessionLeaderError::Unknown);
        }
        let device = fs::metadata(tty).map_err(SessionLeaderError::NoDevice)?.rdev();
        let (leader, started) = Self::on(device).ok_or(SessionLeaderError::Unused)?;
        if surface.tty().is_some_and(|plain| plain.leader_started != started) {
            return Err(SessionLeaderError::OtherTerminal);
        }
        Ok(leader)
    }

    /// The session leader on a device, and its start time.
    fn on(device: u64) -> Option<(Self, u64)> {
        let processes = fs::read_dir("/proc").ok()?;
        let mut pids =
            processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find_map(|pid| {
            let stat =
                ProcessStat::of(pid).filter(|stat| stat.session == pid && u64::from(stat.tty) == device)?;
            Some((Self { pid, parent: stat.parent }, stat.started))
        })
    }

    /// The environment it was started with.
    pub fn variables(&self) -> io::Result<Vec<(String, String)>> {
        let bytes = fs::read(format!("/proc/{}/environ", self.pid))?;
        let text = String::from_utf8_lossy(&bytes);
        let variables = text.split('\0').filter_map(|entry| entry.split_once('='));
        Ok(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn versions_of_one_program_are_the_same() {
        let check = |one: &str, other: &str, expected: bool| {
            assert_eq!(are_versions_of_one(Path::new(one), Path::new(other)), expected, "{one} {other}");
        };
        check("/usr/bin/codex", "/opt/codex/bin/codex", true);
        check("/usr/bin/codex", "/usr/bin/codex (deleted)", true);
        check("/opt/versions/2.1.0", "/opt/versions/2.1.4 (deleted)", true);
        check("/opt/versions/2.1.0", "/tmp/2.1.4", false);
        check("/usr/bin/node", "/usr/bin/dash", false);
        check("/usr/bin/7z", "/usr/bin/dash", false);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_run_different_programs_or_the_same() {
        let own = std::process::id();
        assert!(!run_different_programs(own, own));
        assert!(!run_different_programs(own, 0), "nothing is known of it");
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let differs = run_different_programs(own, other.id());
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(differs);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_was_killed_is_about_to_end() {
        let stat = |state: &str, flags: u32, signals: u64| {
            format!(
                "7 (a ) b) {state} 5 7 6 34817 7 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0 1 1 0 0 0 {signals} 0 0 0"
            )
        };
        let check =
            |line: &str, expected| assert_eq!(is_same_and_ending(line, Some(4711)), expected, "{line}");
        check(&stat("S", 4_194_304, 0), Some(false));
        check(&stat("S", 4_194_304, 0x4200), Some(false));
        check(&stat("S", 4_194_304, 0x100), Some(true));
        check(&stat("R", 4_194_308, 0), Some(true));
        check(&stat("Z", 0, 0), Some(true));
        check("", None);
        assert_eq!(is_same_and_ending(&stat("Z", 0, 0), Some(4712)), None, "another one has its number");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_runs_is_not_and_one_that_was_not_waited_for_is() {
        assert!(!is_ending(std::process::id(), started(std::process::id())));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let began = started(child.id());
        assert!(!is_ending(child.id(), began));
        child.kill().unwrap();
        // There is a moment in which it has noticed, and does not exit yet.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_ending(child.id(), began) {
            assert!(std::time::Instant::now() < end, "it was killed");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_ending(child.id(), began), "it is gone");
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn a_process_is_read_however_it_is_called() {
        let line = "7 (a ) b (c) S 5 7 6 34817 7 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat =
            ProcessStat { parent: 5, group: 7, session: 6, tty: 34_817, foreground_group: 7, started: 4711 };
        assert_eq!(ProcessStat::read(line), Some(stat));
        assert!(stat.is_in_foreground());
        for other in [
            ProcessStat { foreground_group: 8, ..stat },
            ProcessStat { tty: 0, foreground_group: -1, ..stat },
        ] {
            assert!(!other.is_in_foreground(), "{other:?}");
        }
        for broken in ["", "7 (x", "7 (x) S", "7 (x) S 5"] {
            assert_eq!(ProcessStat::read(broken), None);
        }
    }

    #[test]
    fn this_process_is_the_same_by_name_and_by_number() {
        assert_eq!(ProcessStat::of("self"), ProcessStat::of(std::process::id()));
        assert!(started(std::process::id()).is_some());
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn devices_by_their_numbers() {
        assert_eq!(device_path(34_816 + 7).as_deref(), Some("/dev/pts/7"));
        assert_eq!(device_path(35_072).as_deref(), Some("/dev/pts/256"));
        assert_eq!(device_path(0x0401).as_deref(), Some("/dev/tty1"));
        assert_eq!(device_path(0), None);
    }
}
