//! Starts a hub that outlives the process that starts it and inherits nothing unnecessary, and stores why the last start failed.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ringer_journal::Home;
use ringer_platform::{Durability, replace_file};
use ringer_term::sanitise_line;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::discovery::{make_directory, places, read_own};

/// The environment variables that a hub inherits. None of them describes the caller's secrets, sandbox or terminal.
const KEPT: [&str; 27] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_TIME",
    "TZ",
    "SHELL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "XDG_DATA_DIRS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "PULSE_SERVER",
    "RINGER_HOME",
    "RINGER_CONFIG",
    "RINGER_HUB",
    "RINGER_HUB_IDLE_MS",
    "RINGER_WINDOWS",
];

/// Variables for network access: webhooks and programs need them behind a proxy, and links to other machines need the person's
/// ssh agent. Not inherited from a sandbox, whose proxy ends with it.
const KEPT_OUTSIDE_SANDBOXES: [&str; 11] = [
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Variables that the sandboxes of Claude Code and Codex set.
const SANDBOX_MARKS: [&str; 3] = ["SANDBOX_RUNTIME", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"];

/// The argument that makes the process the hub itself.
pub const DETACHED: &str = "--detached";

/// The arguments of a hub.
const HUB: [&str; 3] = ["hub", "run", DETACHED];

/// The directory that lists the open descriptors of this process.
const OPEN_FILES: &str = if cfg!(target_os = "macos") { "/dev/fd" } else { "/proc/self/fd" };

/// What a hub prints to standard output once it accepts connections.
pub(crate) const READY: &str = "ready\n";

/// What it prints there if it cannot run, followed by the reason.
const FAILED_PREFIX: &str = "failed: ";

/// The argument that makes the hub exit at once if there is no journal.
pub const IF_USED: &str = "--if-used";

/// Starts `program hub run --detached --if-used` without waiting. If the home has been removed by the time it runs, it must not
/// be created again.
pub fn start_detached(program: &Path) -> io::Result<()> {
    command(program, &HUB).arg(IF_USED).stdout(Stdio::null()).spawn().map(drop)
}

/// Why a hub could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The hub reported why it cannot run.
    #[error("{0}")]
    Failed(String),
    /// The process could not be started, or reported nothing in time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Starts a hub and waits, at most for `patience`, until it accepts connections or finds that another hub is running.
pub fn start_and_wait(program: &Path, patience: Duration) -> Result<(), StartError> {
    start_with_arguments(program, &HUB, patience)
}

/// Starts the program with other arguments in the same way, and waits until it reports that it is ready or exits.
pub fn start_with_arguments(
    program: &Path,
    arguments: &[&str],
    patience: Duration,
) -> Result<(), StartError> {
    let mut child = command(program, arguments).stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take();
    reap(child);
    let line = first_line(said.ok_or(io::ErrorKind::BrokenPipe).map_err(io::Error::from)?, patience)?;
    match line.strip_prefix(FAILED_PREFIX.as_bytes()) {
        Some(why) => Err(StartError::Failed(String::from_utf8_lossy(why).trim_end().to_owned())),
        None => Ok(()),
    }
}

/// Reads the first line of a process: that it is ready, or why it is not. Empty if it exits because another hub is running.
fn first_line(mut said: ChildStdout, patience: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + patience;
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&said, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            // A signal, such as SIGWINCH.
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut piece = [0; 1024];
        match said.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => line.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

/// Reaps a process on a separate thread. This process may outlive it, which would leave a zombie.
fn reap(mut child: Child) {
    // Without the thread, a zombie may remain until this process exits.
    let _ = thread::Builder::new().name("reaper".to_owned()).spawn(move || child.wait());
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(kept(|name| std::env::var_os(name)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Selects the variables that a hub inherits. Drops network variables with an `@`, which may contain a password.
fn kept(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, OsString)> {
    let is_in_sandbox = SANDBOX_MARKS.iter().any(|mark| variable(mark).is_some());
    let network = KEPT_OUTSIDE_SANDBOXES.iter().filter(|_| !is_in_sandbox);
    let network = network.filter_map(|name| Some((*name, variable(name)?)));
    let network = network.filter(|(_, value)| !value.as_encoded_bytes().contains(&b'@'));
    KEPT.iter().filter_map(|name| Some((*name, variable(name)?))).chain(network).collect()
}

/// Leaves the session and the terminal of the parent process, and closes inherited descriptors: a pipe kept open here would
/// make its reader wait forever. Must be called before this process opens anything.
pub fn detach() -> io::Result<()> {
    for fd in inherited()? {
        #[expect(unsafe_code, reason = "nothing in this process owns them: it has opened nothing yet")]
        // SAFETY: these numbers came with exec, and no value of this program stands for them.
        unsafe {
            rustix::io::close(fd);
        }
    }
    rustix::process::setsid()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    Ok(())
}

/// Returns the inherited descriptors, except the standard streams.
fn inherited() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir(OPEN_FILES)?;
    let open: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The list includes the descriptor of the directory itself, which is closed by now.
    Ok(open.into_iter().filter(|fd| *fd > 2 && is_open(*fd)).collect())
}

fn is_open(fd: RawFd) -> bool {
    fs::symlink_metadata(format!("{OPEN_FILES}/{fd}")).is_ok()
}

/// Reports to the parent process that the hub accepts connections.
pub fn tell_ready() {
    tell(READY);
}

/// Reports to the parent process why the hub cannot run.
pub fn tell_failed(why: &str) {
    tell(&format!("{FAILED_PREFIX}{}\n", sanitise_line(why)));
}

fn tell(line: &str) {
    // Usually no process is waiting for it.
    let _ = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
}

const START_FAILURE_FILE: &str = "hub.failed";
/// The longest reason that is stored, in bytes. Errors name a path or two.
const MAX_REASON: usize = 8 * 1024;

/// When and why the last hub failed to start. Stored until a hub runs, for commands and `ringer doctor`: a hub starts in the
/// background, where nobody sees its errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// The time, in milliseconds since 1970.
    pub unix_ms: i64,
    /// The reason, for people.
    pub why: String,
}

impl StartFailure {
    /// Reads why the last hub of this home failed to start. `None` if it did not fail.
    pub fn read(home: &Home, runtime: Option<&Path>) -> Option<Self> {
        let found = start_failure_files(home, runtime)
            .into_iter()
            .filter_map(|file| serde_json::from_slice::<Self>(&read_own(&file, 2 * MAX_REASON as u64)?).ok());
        found.max_by_key(|failure| failure.unix_ms)
    }

    /// Stores the failure in the first place that can be written. Most hubs fail to start because the home's disk is full or
    /// read-only; the runtime directory is still writable then.
    pub fn write(mut self, home: &Home, runtime: Option<&Path>) -> io::Result<()> {
        self.why.truncate(self.why.floor_char_boundary(MAX_REASON));
        let text = serde_json::to_vec(&self)?;
        let mut failed = io::ErrorKind::NotFound.into();
        for place in places(home, runtime) {
            match make_directory(&place).and_then(|directory| {
                replace_file(&directory.join(START_FAILURE_FILE), &text, Durability::Unsynced)
            }) {
                Ok(()) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Removes the stored failure, because a hub is running.
    pub fn remove(home: &Home, runtime: Option<&Path>) {
        for file in start_failure_files(home, runtime) {
            let _ = fs::remove_file(file);
        }
    }
}

fn start_failure_files(home: &Home, runtime: Option<&Path>) -> Vec<PathBuf> {
    places(home, runtime).iter().map(|place| place.directory().join(START_FAILURE_FILE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &[(&str, &str)]) -> Vec<&'static str> {
        let find =
            |name: &str| environment.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into());
        kept(find).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_proxy_is_kept_and_a_secret_or_a_sandbox_is_not() {
        let proxy = ("HTTPS_PROXY", "http://proxy.example:3128");
        assert_eq!(names(&[proxy, ("NO_PROXY", "localhost"), ("TOKEN", "x")]), ["HTTPS_PROXY", "NO_PROXY"]);
        assert_eq!(names(&[("all_proxy", "http://me:hunter2@proxy.example"), proxy]), ["HTTPS_PROXY"]);
        assert_eq!(names(&[("PULSE_SERVER", "unix:/mnt/wslg/PulseServer")]), ["PULSE_SERVER"]);
        for mark in SANDBOX_MARKS {
            assert_eq!(names(&[proxy, ("PATH", "/bin"), (mark, "1")]), ["PATH"], "{mark}");
        }
    }

    #[test]
    fn the_newest_reason_is_kept_until_a_hub_runs() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        let runtime = directory.path().join("run");
        fs::create_dir(home.path()).unwrap();
        fs::create_dir(&runtime).unwrap();
        assert_eq!(StartFailure::read(&home, Some(&runtime)), None);
        let failure = |unix_ms, why: &str| StartFailure { unix_ms, why: why.to_owned() };
        failure(1, "in the home").write(&home, None).unwrap();
        failure(2, "in the runtime directory").write(&home, Some(&runtime)).unwrap();
        let read = StartFailure::read(&home, Some(&runtime)).unwrap();
        assert_eq!(read, failure(2, "in the runtime directory"));
        failure(3, &"ä".repeat(100_000)).write(&home, Some(&runtime)).unwrap();
        let read = StartFailure::read(&home, Some(&runtime)).unwrap();
        assert!(read.unix_ms == 3 && read.why.len() <= MAX_REASON);
        StartFailure::remove(&home, Some(&runtime));
        assert_eq!(StartFailure::read(&home, Some(&runtime)), None);
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
