//! Starting a hub that outlives whoever starts it, and takes nothing of theirs along.

use std::io::{self, Read};
use std::os::fd::RawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a hub may know of the environment of its first caller. Not its secrets, its sandbox or its terminal.
const KEPT: [&str; 23] = [
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
    "RINGER_HOME",
    "RINGER_CONFIG",
    "RINGER_HUB_IDLE_MS",
];

/// The argument that makes the program the hub itself.
pub const DETACHED: &str = "--detached";

/// Where the system lists what this process has open.
const OPEN_FILES: &str = if cfg!(target_os = "macos") { "/dev/fd" } else { "/proc/self/fd" };

/// What a hub says on its standard output once it can be talked to.
pub(crate) const READY: &str = "ready\n";

/// Starts `program hub run --detached`, and does not wait for it.
pub fn start_detached(program: &Path) -> io::Result<()> {
    command(program).stdout(Stdio::null()).spawn().map(drop)
}

/// Starts a hub and waits until it can be talked to, or until there is one already; for so long at most.
pub fn start_and_wait(program: &Path, patience: Duration) -> io::Result<()> {
    let mut child = command(program).stdout(Stdio::piped()).spawn()?;
    let mut said = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    // Either it says that it is ready, or it ends because another one is.
    match poll(&mut [PollFd::new(&said, PollFlags::IN)], Some(&timeout))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => said.read(&mut [0; 16]).map(drop),
    }
}

fn command(program: &Path) -> Command {
    let kept = KEPT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command
        .args(["hub", "run", DETACHED])
        .env_clear()
        .envs(kept)
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Leaves the session, the terminal and the open files of whoever started this process. To be called before anything is
/// opened: a pipe that is kept open here would make somebody wait for its end for ever.
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
    let entries = std::fs::read_dir(OPEN_FILES)?;
    let open: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The last one is the directory's own, which is closed by now.
    Ok(open.into_iter().filter(|fd| *fd > 2 && is_open(*fd)).collect())
}

/// Whether a descriptor is still open.
fn is_open(fd: RawFd) -> bool {
    std::fs::symlink_metadata(format!("{OPEN_FILES}/{fd}")).is_ok()
}

/// Tells whoever started this process that it can be talked to.
pub(crate) fn tell_ready() {
    use std::io::Write;
    // Mostly nobody waits.
    let _ = io::stdout().write_all(READY.as_bytes()).and_then(|()| io::stdout().flush());
}
