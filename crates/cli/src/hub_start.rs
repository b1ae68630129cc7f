//! Starts a hub for callers that need one but do not talk to it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ringer_ipc::{StartError, start_detached};
use ringer_journal::{Home, HubLock};

/// True if this process keeps running long after it has started a hub.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// Makes a short-lived process start hubs from now on. Otherwise the hub of a server that a client runs would be a descendant of
/// that client's agent, and what it starts for the person would count as the agent's; and nothing would reap it when it exits.
pub(crate) fn start_by_another_process() {
    IS_SERVER.store(true, Ordering::Relaxed);
}

pub(crate) fn is_server() -> bool {
    IS_SERVER.load(Ordering::Relaxed)
}

/// Returns false if `RINGER_HUB=off` forbids starting a hub.
pub(crate) fn may_start() -> bool {
    std::env::var_os("RINGER_HUB").is_none_or(|value| value != "off")
}

/// Starts a hub unless one runs. A running hub that finds damage exits by itself, and starts the next.
pub(crate) fn ensure_hub(home: &Home) {
    if HubLock::owner(home).is_none() {
        start_in_background();
    }
}

/// Starts a hub, if allowed. Does not wait for it.
pub(crate) fn start_in_background() {
    if may_start()
        && let Ok(program) = std::env::current_exe()
    {
        if IS_SERVER.load(Ordering::Relaxed) {
            thread::spawn(move || start_with_command(&program));
        } else {
            let _ = start_detached(&program);
        }
    }
}

/// Starts a hub with `ringer hub start`, and waits for that command.
pub(crate) fn start_with_command(program: &Path) -> Result<(), StartError> {
    let mut command = Command::new(program);
    command.args(["hub", "start"]).stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
    Err(StartError::Failed(why.trim_start_matches("the hub cannot start: ").to_owned()))
}
