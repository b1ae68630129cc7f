//! Where this process is: its terminal, and the surface that it is on.
//!
//! An agent's hooks have no terminal of their own; then it is that of the nearest ancestor that has one.

use std::fs::{self, File};
use std::io::Read;

use ringer_core::Origin;

/// How far up is looked. An agent, its shell and a few wrappers lie between a hook and the terminal.
const MAX_ANCESTORS: usize = 32;

/// Where a message comes from. Only what costs next to nothing: this is the fast path.
pub(crate) fn origin() -> Origin {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let terminal = controlling_terminal();
    let tmux = set("TMUX").zip(set("TMUX_PANE")).and_then(|(server, pane)| tmux_surface(&server, &pane));
    let plain = terminal.as_ref().map(Terminal::surface);
    Origin {
        // The one who called us: we are gone before anybody can look.
        pid: rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()),
        tty: terminal.map(|terminal| terminal.tty).or_else(standard_stream),
        cwd: std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned()),
        terminal: set("TERM_PROGRAM").or_else(|| set("TERM")),
        pane: set("TMUX_PANE"),
        // Inside tmux the ids in the environment are those of the terminal around it.
        surface: tmux.or_else(|| set("RINGER_SURFACE")).or(plain),
        workspace: set("RINGER_WORKSPACE"),
    }
}

/// A pane of tmux, out of `TMUX` (`socket,server pid,session`) and `TMUX_PANE`.
fn tmux_surface(server: &str, pane: &str) -> Option<String> {
    let mut fields = server.rsplitn(3, ',');
    let (_session, pid, socket) = (fields.next()?, fields.next()?, fields.next()?);
    Some(format!("tmux:{socket}:{pid}:{pane}"))
}

/// A terminal, and when the leader of its session was started: devices are used again.
#[derive(Debug, PartialEq, Eq)]
struct Terminal {
    tty: String,
    leader_started: u64,
}

impl Terminal {
    fn surface(&self) -> String {
        format!("tty:{}@{}", self.tty, self.leader_started)
    }
}

/// The process that started this one, and when it was started.
pub(crate) fn parent() -> Option<(u32, u64)> {
    let pid = rustix::process::getppid()?.as_raw_nonzero().get().cast_unsigned();
    Some((pid, Stat::of(&pid.to_string())?.started))
}

/// The controlling terminal of this process, or of the nearest ancestor that has one.
fn controlling_terminal() -> Option<Terminal> {
    let mut stat = Stat::of("self")?;
    for _ in 0..MAX_ANCESTORS {
        if let Some(tty) = device_path(stat.tty) {
            let leader_started = Stat::of(&stat.session.to_string())?.started;
            return Some(Terminal { tty, leader_started });
        }
        if stat.parent <= 1 {
            return None;
        }
        stat = Stat::of(&stat.parent.to_string())?;
    }
    None
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    session: u32,
    tty: u32,
    started: u64,
}

impl Stat {
    fn of(pid: &str) -> Option<Self> {
        // One read: the line is shorter than this, and every ancestor costs one.
        let mut line = [0; 1024];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        Self::read(&String::from_utf8_lossy(&line[..length]))
    }

    fn read(stat: &str) -> Option<Self> {
        // The name in parentheses may hold anything, so count from its end.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Self {
            parent: fields.nth(1)?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
            tty: fields.next()?.parse::<i32>().ok()?.cast_unsigned(),
            started: fields.nth(14)?.parse().ok()?,
        })
    }
}

/// The path of a terminal by the kernel's number for it: pseudo-terminals and consoles.
fn device_path(number: u32) -> Option<String> {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    match major {
        4 => Some(format!("/dev/tty{minor}")),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// The terminal of whichever standard stream is one.
fn standard_stream() -> Option<String> {
    (0..3).find_map(|fd| {
        let target = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
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
    fn devices_by_their_numbers() {
        assert_eq!(device_path(34_816 + 7).as_deref(), Some("/dev/pts/7"));
        assert_eq!(device_path(35_072).as_deref(), Some("/dev/pts/256"));
        assert_eq!(device_path(0x0401).as_deref(), Some("/dev/tty1"));
        assert_eq!(device_path(0), None);
    }

    #[test]
    fn a_process_is_read_however_it_is_called() {
        let line = "7 (a ) b (c) S 5 7 6 34817 7 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = Stat { parent: 5, session: 6, tty: 34_817, started: 4711 };
        assert_eq!(Stat::read(line), Some(stat));
        assert_eq!(Stat::read("7 (x) S 5"), None);
    }
}
