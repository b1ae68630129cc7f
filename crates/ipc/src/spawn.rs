//! Starting a hub that outlives the process that starts it, and takes nothing of it along; and why the last one failed to start.

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

/// What a hub may know of the environment of its first caller. Not its secrets, its sandbox or its terminal.
const KEPT: [&str; 26] = [
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

/// How the network is reached: webhooks and programs need it behind a proxy, and links to other machines need the keys of the
/// person's ssh agent. Nothing of it is kept in a sandbox, whose proxy is its own and goes with it.
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

/// Set by the sandboxes of Claude Code and Codex for what runs in them.
const SANDBOX_MARKS: [&str; 3] = ["SANDBOX_RUNTIME", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"];

/// The argument that makes the program the hub itself.
pub const DETACHED: &str = "--detached";

/// The arguments of a hub.
const HUB: [&str; 3] = ["hub", "run", DETACHED];

/// Where the system lists what this process has open.
const OPEN_FILES: &str = if cfg!(target_os = "macos") { "/dev/fd" } else { "/proc/self/fd" };

/// What a hub says on its standard output once it can be talked to.
pub(crate) const READY: &str = "ready\n";

/// What it says there if it cannot run; the reason follows.
const FAILED: &str = "failed: ";

/// The argument with which it ends at once if there is no journal.
pub const IF_USED: &str = "--if-used";

/// Starts `program hub run --detached --if-used`, and does not wait for it. By the time it runs, the message that it is started
/// for may be gone with all the rest, and then it must not create anything.
pub fn start_detached(program: &Path) -> io::Result<()> {
    command(program, &HUB).arg(IF_USED).stdout(Stdio::null()).spawn().map(drop)
}

/// Why a hub that was started cannot be talked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It said why it cannot run.
    #[error("{0}")]
    Failed(String),
    /// It could not be started, or said nothing in time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Starts a hub and waits until it can be talked to, or until there is one already; for so long at most.
pub fn start_and_wait(program: &Path, patience: Duration) -> Result<(), StartError> {
    start_with_arguments(program, &HUB, patience)
}

/// Starts the program with other arguments, as a hub is started, and waits until it says that it is ready or ends.
pub fn start_with_arguments(
    program: &Path,
    arguments: &[&str],
    patience: Duration,
) -> Result<(), StartError> {
    let mut child = command(program, arguments).stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take();
    reap(child);
    let line = first_line(said.ok_or(io::ErrorKind::BrokenPipe).map_err(io::Error::from)?, patience)?;
    match line.strip_prefix(FAILED.as_bytes()) {
        Some(why) => Err(StartError::Failed(String::from_utf8_lossy(why).trim_end().to_owned())),
        None => Ok(()),
    }
}

/// What a process says: in one line that it is ready or why it is not, or nothing because another one is there.
fn first_line(mut said: ChildStdout, patience: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + patience;
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&said, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            // A signal, such as that of a terminal whose size has changed.
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

/// Waits for the end of a process on a thread of its own: this one may live longer, and would keep what is left of the other.
fn reap(mut child: Child) {
    // Without a thread it stays until this process ends.
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

/// What a hub gets of an environment. An address with a password in it is a secret, so that is not kept either.
fn kept(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, OsString)> {
    let is_in_sandbox = SANDBOX_MARKS.iter().any(|mark| variable(mark).is_some());
    let network = KEPT_OUTSIDE_SANDBOXES.iter().filter(|_| !is_in_sandbox);
    let network = network.filter_map(|name| Some((*name, variable(name)?)));
    let network = network.filter(|(_, value)| !value.as_encoded_bytes().contains(&b'@'));
    KEPT.iter().filter_map(|name| Some((*name, variable(name)?))).chain(network).collect()
}

/// Leaves the session, the terminal and the open files of the process that started this one. To be called before anything is
/// opened: a pipe that is kept open here would make its reader wait for ever.
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

/// The descriptors that were open when this process began, beyond the first three.
fn inherited() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir(OPEN_FILES)?;
    let open: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The last one is the directory's own, which is closed by now.
    Ok(open.into_iter().filter(|fd| *fd > 2 && is_open(*fd)).collect())
}

/// Whether a descriptor is still open.
fn is_open(fd: RawFd) -> bool {
    fs::symlink_metadata(format!("{OPEN_FILES}/{fd}")).is_ok()
}

/// Tells the process that started this one that the hub can be talked to.
pub fn tell_ready() {
    tell(READY);
}

/// Tells the process that started this one why there is no hub.
pub fn tell_failed(why: &str) {
    tell(&format!("{FAILED}{}\n", sanitise_line(why)));
}

fn tell(line: &str) {
    // Mostly no process waits for it.
    let _ = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
}

const START_FAILURE_FILE: &str = "hub.failed";
/// The longest reason that is kept, in bytes. Errors name a path or two.
const MAX_REASON: usize = 8 * 1024;

/// Why and when the last hub could not run. Stored until one runs, for commands and `ringer doctor`: a hub starts in the
/// background, where its errors are not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// When, in milliseconds since 1970.
    pub unix_ms: i64,
    /// Why, in words.
    pub why: String,
}

impl StartFailure {
    /// Why the last hub of that home could not run. `None` if it ran.
    pub fn read(home: &Home, runtime: Option<&Path>) -> Option<Self> {
        let found = start_failure_files(home, runtime)
            .into_iter()
            .filter_map(|file| serde_json::from_slice::<Self>(&read_own(&file, 2 * MAX_REASON as u64)?).ok());
        found.max_by_key(|failure| failure.unix_ms)
    }

    /// Keeps it in the first place that can be written: the runtime directory is there when the home's disk is full or
    /// cannot be written, which is why most hubs do not start.
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

    /// A hub runs: there is nothing to say any more.
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
