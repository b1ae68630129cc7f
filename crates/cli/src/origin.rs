//! Locates this process: its terminal and its surface.
//!
//! An agent's hooks have no terminal of their own; then the nearest ancestor's terminal is used.

use ringer_core::message::{MessageOrigin, TmuxSurface};
use ringer_journal::{ControllingTerminal, ProcessStat};
use ringer_term::Env;

/// Returns the origin of a message. Uses only what costs next to nothing: this is the fast path.
pub(crate) fn message_origin() -> MessageOrigin {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let terminal = ControllingTerminal::of("self");
    let pane = set("TMUX_PANE")
        .filter(|_| with_session_leader(Env::new(tmux_variables()), terminal.as_ref()).is_in_tmux());
    let tmux = set("TMUX").zip(pane.as_ref()).and_then(|(tmux, pane)| {
        let surface = TmuxSurface::of_variables(&tmux, pane)?;
        Some(surface.id().to_string())
    });
    let plain = terminal.as_ref().map(ControllingTerminal::surface);
    let named = set("RINGER_SURFACE");
    // Inside tmux the ids in the environment belong to the terminal around tmux.
    let surface = tmux.or_else(|| named.clone()).or(plain);
    // Behind the PTY of `ringer run`, the surface and the device belong to the real terminal.
    let real_terminal = set("RINGER_TTY").filter(|_| named.is_some() && named == surface);
    MessageOrigin {
        // The parent process, because this process ends before the message is read.
        pid: rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
        tty: real_terminal.or(terminal.map(|terminal| terminal.tty)).or_else(standard_stream),
        cwd: std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned()),
        terminal: set("TERM_PROGRAM").or_else(|| set("TERM")),
        pane,
        surface,
        workspace: set("RINGER_WORKSPACE"),
        ..MessageOrigin::default()
    }
}

/// Returns the surface of the terminal itself, whatever the environment says, and the parent of the session leader.
pub(crate) fn plain_surface() -> Option<(String, u32)> {
    ControllingTerminal::of("self").map(|terminal| (terminal.surface(), terminal.leader_parent))
}

/// The variables that show whether this process is in a tmux pane.
fn tmux_variables() -> impl Iterator<Item = (&'static str, String)> {
    ["TMUX", "TERM"].into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
}

/// Corrects the environment for the terminal of this process: variables of tmux may be inherited from elsewhere.
pub(crate) fn environment(variables: Env) -> Env {
    with_session_leader(variables, ControllingTerminal::of("self").as_ref())
}

fn with_session_leader(variables: Env, terminal: Option<&ControllingTerminal>) -> Env {
    match terminal {
        Some(terminal) => variables.led_by_child_of(terminal.leader_parent),
        None => variables,
    }
}

/// Returns the parent process and its start time.
pub(crate) fn parent() -> Option<(u32, u64)> {
    let pid = rustix::process::getppid()?.as_raw_nonzero().get().cast_unsigned();
    Some((pid, ProcessStat::of(pid)?.started))
}

/// Returns the terminal of the first standard stream that is one.
#[cfg(target_os = "macos")]
fn standard_stream() -> Option<String> {
    use rustix::termios::ttyname;
    let name = ttyname(std::io::stdin(), Vec::new())
        .or_else(|_| ttyname(std::io::stdout(), Vec::new()))
        .or_else(|_| ttyname(std::io::stderr(), Vec::new()));
    name.ok()?.into_string().ok()
}

/// Returns the terminal of the first standard stream that is one.
#[cfg(not(target_os = "macos"))]
fn standard_stream() -> Option<String> {
    (0..3).find_map(|fd| {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        let target = target.to_str()?;
        (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty")).then(|| target.to_owned())
    })
}
