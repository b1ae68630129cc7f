//! Where this process is: its terminal, and the surface that it is on.
//!
//! An agent's hooks have no terminal of their own; then it is that of the nearest ancestor that has one.

use ringer_core::message::{MessageOrigin, TmuxSurface};
use ringer_journal::ProcessStat;
use ringer_term::Env;

/// How far up is looked. An agent, its shell and a few wrappers lie between a hook and the terminal.
const MAX_ANCESTORS: usize = 32;

/// Where a message comes from. Only what costs next to nothing: this is the fast path.
pub(crate) fn message_origin() -> MessageOrigin {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let terminal = controlling_terminal();
    let pane = set("TMUX_PANE")
        .filter(|_| with_session_leader(Env::new(tmux_variables()), terminal.as_ref()).is_in_tmux());
    let tmux = set("TMUX").zip(pane.as_ref()).and_then(|(server, pane)| tmux_surface(&server, pane));
    let plain = terminal.as_ref().map(Terminal::surface);
    let named = set("RINGER_SURFACE");
    // Inside tmux the ids in the environment are those of the terminal around it.
    let surface = tmux.or_else(|| named.clone()).or(plain);
    // Behind the PTY of `ringer run` the surface is that of the real terminal, and so is its device.
    let real_terminal = set("RINGER_TTY").filter(|_| named.is_some() && named == surface);
    MessageOrigin {
        // The process that called this one: this one ends before the message is read.
        pid: rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
        tty: real_terminal.or(terminal.map(|terminal| terminal.tty)).or_else(standard_stream),
        cwd: std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned()),
        terminal: set("TERM_PROGRAM").or_else(|| set("TERM")),
        pane,
        surface,
        workspace: set("RINGER_WORKSPACE"),
    }
}

/// A pane of tmux, out of `TMUX` (`socket,server pid,session`) and `TMUX_PANE`.
fn tmux_surface(server: &str, pane: &str) -> Option<String> {
    let mut fields = server.rsplitn(3, ',');
    let (_session, pid, socket) = (fields.next()?, fields.next()?, fields.next()?);
    Some(TmuxSurface { socket, server: pid, pane }.id().to_string())
}

/// The surface of the terminal itself, whatever the environment says, and the process that started its session's leader.
pub(crate) fn plain_surface() -> Option<(String, u32)> {
    controlling_terminal().map(|terminal| (terminal.surface(), terminal.leader_parent))
}

/// The variables that tell whether this process is in a tmux pane.
fn tmux_variables() -> impl Iterator<Item = (&'static str, String)> {
    ["TMUX", "TERM"].into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
}

/// The environment of this process for the terminal that it runs in: variables of tmux may be inherited from elsewhere.
pub(crate) fn environment(variables: Env) -> Env {
    with_session_leader(variables, controlling_terminal().as_ref())
}

fn with_session_leader(variables: Env, terminal: Option<&Terminal>) -> Env {
    match terminal {
        Some(terminal) => variables.led_by_child_of(terminal.leader_parent),
        None => variables,
    }
}

/// A terminal, and when the leader of its session was started: devices are used again.
#[derive(Debug, PartialEq, Eq)]
struct Terminal {
    tty: String,
    leader_started: u64,
    leader_parent: u32,
}

impl Terminal {
    fn surface(&self) -> String {
        format!("tty:{}@{}", self.tty, self.leader_started)
    }
}

/// The process that started this one, and when it was started.
pub(crate) fn parent() -> Option<(u32, u64)> {
    let pid = rustix::process::getppid()?.as_raw_nonzero().get().cast_unsigned();
    Some((pid, ProcessStat::of(pid)?.started))
}

/// The controlling terminal of this process, or of the nearest ancestor that has one.
fn controlling_terminal() -> Option<Terminal> {
    let mut stat = ProcessStat::of("self")?;
    for _ in 0..MAX_ANCESTORS {
        if let Some(tty) = device_path(stat.tty) {
            let leader = ProcessStat::of(stat.session)?;
            return Some(Terminal { tty, leader_started: leader.started, leader_parent: leader.parent });
        }
        if stat.parent <= 1 {
            return None;
        }
        stat = ProcessStat::of(stat.parent)?;
    }
    None
}

/// The path of a terminal by the kernel's number for it: pseudo-terminals and consoles.
#[cfg(not(target_os = "macos"))]
fn device_path(number: u32) -> Option<String> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        4 => Some(format!("/dev/tty{minor}")),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// The path of a terminal by the kernel's number for it: pseudo-terminals, which have no other name on macOS.
#[cfg(target_os = "macos")]
fn device_path(number: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let path = format!("/dev/ttys{:03}", number & 0xff_ffff);
    std::fs::metadata(&path).ok().filter(|device| device.rdev() == u64::from(number)).map(|_| path)
}

/// The terminal of whichever standard stream is one.
#[cfg(target_os = "macos")]
fn standard_stream() -> Option<String> {
    use rustix::termios::ttyname;
    let name = ttyname(std::io::stdin(), Vec::new())
        .or_else(|_| ttyname(std::io::stdout(), Vec::new()))
        .or_else(|_| ttyname(std::io::stderr(), Vec::new()));
    name.ok()?.into_string().ok()
}

/// The terminal of whichever standard stream is one.
#[cfg(not(target_os = "macos"))]
fn standard_stream() -> Option<String> {
    (0..3).find_map(|fd| {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        let target = target.to_str()?;
        (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty")).then(|| target.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_of_tmux_is_named_by_its_server() {
        assert_eq!(tmux_surface("/tmp/tmux-0/a,b,12,0", "%3").unwrap(), "tmux:/tmp/tmux-0/a,b:12:%3");
        assert_eq!(tmux_surface("oops", "%3"), None);
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
