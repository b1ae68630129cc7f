//! Panes of tmux: found by the id of their surface alone, so that a hub finds those that an earlier one heard of.

use std::fmt;
use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_deliver::{Output, Program};
use ringer_journal::ProcessStat;
use ringer_term::{Env, sanitise_line};

/// How long tmux may take for one command. It answers within milliseconds unless its server hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);
/// The most that tmux may say: a row of 200 bytes for each of thousands of panes.
const MOST: usize = 1024 * 1024;

/// What is asked of every pane. The name comes last: it may hold spaces. (tmux prints tabs as underscores.)
const PANE: &str =
    "#{pid} #{pane_id} #{session_attached} #{session_id} #{window_id} #{pane_tty} #{session_name}";
/// What is asked of every client. One in control mode is a program and shows nothing.
const CLIENT: &str = "#{client_control_mode} #{client_activity} #{session_id} #{client_name}";

/// A pane, as the id of its surface names it: `tmux:<socket>:<server's pid>:%N`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxPane {
    socket: String,
    /// Pane numbers are those of one server; another one may have the socket now.
    pub(crate) server: String,
    pub(crate) pane: String,
}

/// Why the person could not be brought somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreachable {
    /// In words.
    pub(crate) why: String,
    /// A command that helps.
    pub(crate) hint: Option<String>,
    /// The place is no more.
    pub(crate) is_gone: bool,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(formatter, "{}; hint: {hint}", self.why),
            None => formatter.write_str(&self.why),
        }
    }
}

impl Unreachable {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, is_gone: false }
    }

    fn gone(why: String) -> Self {
        Self { is_gone: true, ..Self::new(why) }
    }
}

/// Where a pane is now.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    session: String,
    session_name: String,
    window: String,
    tty: String,
}

impl TmuxPane {
    /// The pane of a surface, if that is one.
    pub fn of(surface: &SurfaceId) -> Option<Self> {
        let mut fields = surface.as_str().strip_prefix("tmux:")?.rsplitn(3, ':');
        let (pane, server, socket) = (fields.next()?, fields.next()?, fields.next()?);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_pane = is_number(server) && pane.strip_prefix('%').is_some_and(is_number);
        is_pane.then(|| Self { socket: socket.to_owned(), server: server.to_owned(), pane: pane.to_owned() })
    }

    /// Brings the pane to the front: in a client that shows its session, else in the one that was used last.
    pub(crate) async fn select(&self) -> Result<(), Unreachable> {
        let found = self.find().await?;
        let window = format!("{}:{}", found.session, found.window);
        // Also where no client is attached: the next one to attach finds it selected.
        self.run(&["select-window", "-t", &window, ";", "select-pane", "-t", &self.pane]).await?;
        let clients = self.run(&["list-clients", "-F", CLIENT]).await?;
        let Some(client) = best_client(&clients, &found.session) else {
            return Err(Unreachable {
                why: format!("no terminal shows tmux session {}", sanitise_line(&found.session_name)),
                hint: Some(self.attach(&found.session_name)),
                is_gone: false,
            });
        };
        self.run(&["switch-client", "-c", client, "-t", &window]).await.map(drop)
    }

    /// Whether a process with this environment was started in the pane.
    pub(crate) fn is_around(&self, environment: &Env) -> bool {
        let server = environment.get("TMUX").and_then(|tmux| tmux.rsplit(',').nth(1));
        server == Some(&self.server) && environment.get("TMUX_PANE") == Some(&self.pane)
    }

    /// The terminal device of the pane.
    pub(crate) async fn tty(&self) -> Result<String, Unreachable> {
        self.find().await.map(|found| found.tty)
    }

    async fn find(&self) -> Result<Found, Unreachable> {
        let ended = || Unreachable::gone(format!("its tmux server (pid {}) has ended", self.server));
        let panes = self.run(&["list-panes", "-a", "-F", PANE]).await;
        let panes = panes.map_err(|why| if self.server_runs() { why } else { ended() })?;
        let mut rows = panes.lines().map(|line| line.splitn(7, ' ').collect::<Vec<_>>()).peekable();
        if rows.peek().and_then(|row| row.first()) != Some(&self.server.as_str()) {
            return Err(ended());
        }
        let own = rows.filter(|row| row.get(1) == Some(&self.pane.as_str()));
        // A window may be in several sessions: the one that is looked at, if there is one.
        let row = own.max_by_key(|row| row.get(2).is_some_and(|attached| *attached != "0"));
        match row.as_deref() {
            Some(&[_, _, _, session, window, tty, session_name]) => Ok(Found {
                session: session.to_owned(),
                session_name: session_name.to_owned(),
                window: window.to_owned(),
                tty: tty.to_owned(),
            }),
            _ => Err(Unreachable::gone(format!("its tmux pane {} is closed", self.pane))),
        }
    }

    fn server_runs(&self) -> bool {
        self.server.parse().is_ok_and(|pid: u32| ProcessStat::of(pid).is_some())
    }

    /// What to type to see a session.
    fn attach(&self, session_name: &str) -> String {
        let default = format!("/tmp/tmux-{}/default", rustix::process::geteuid().as_raw());
        let socket =
            if self.socket == default { String::new() } else { format!("-S {} ", quoted(&self.socket)) };
        sanitise_line(&format!("tmux {socket}attach -t {}", quoted(session_name)))
    }

    /// The program that gives the pane's server a command.
    pub(crate) fn program(&self, arguments: &[&str]) -> Program {
        // With -u names come as they are, whatever the locale of this process.
        let argv = [&["tmux", "-u", "-S", &self.socket], arguments].concat();
        Program {
            argv: argv.into_iter().map(str::to_owned).collect(),
            directory: "/".into(),
            environment: Vec::new(),
            input: Vec::new(),
            output: Output::Kept { most: MOST },
            timeout: DEADLINE,
        }
    }

    async fn run(&self, arguments: &[&str]) -> Result<String, Unreachable> {
        match self.program(arguments).run().await.into_result(DEADLINE) {
            Ok(said) => Ok(String::from_utf8_lossy(&said).into_owned()),
            Err(why) => Err(Unreachable::new(format!("tmux: {}", sanitise_line(why.trim())))),
        }
    }
}

/// The client that shows this session, else the one that was used last.
fn best_client<'a>(clients: &'a str, session: &str) -> Option<&'a str> {
    let rows = clients.lines().filter_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let (control, activity, shown) = (fields.next()?, fields.next()?, fields.next()?);
        (control != "1").then_some(((shown == session, activity.parse::<u64>().ok()), fields.next()?))
    });
    rows.max_by(|one, two| one.0.cmp(&two.0)).map(|(_, name)| name)
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_names_a_pane_or_none() {
        let pane = TmuxPane::of(&SurfaceId::new("tmux:/tmp/a:b/default:77:%3")).unwrap();
        let expected = TmuxPane { socket: "/tmp/a:b/default".into(), server: "77".into(), pane: "%3".into() };
        assert_eq!(pane, expected);
        for not_one in
            ["tty:/dev/pts/1@5", "tmux:x", "tmux:s:77:%3' ; kill-server", "tmux:s:7x:%3", "tmux:s::%"]
        {
            assert_eq!(TmuxPane::of(&SurfaceId::new(not_one)), None, "{not_one}");
        }
    }

    #[test]
    fn the_client_that_shows_the_session_is_better_than_the_last_one() {
        let check = |clients: &str, expected: Option<&str>| assert_eq!(best_client(clients, "$1"), expected);
        check("", None);
        check("1 99 $1 client-1", None);
        check("0 5 $2 /dev/pts/1\n0 7 $3 /dev/pts/2", Some("/dev/pts/2"));
        check("0 5 $1 /dev/pts/1\n0 7 $3 /dev/pts/2", Some("/dev/pts/1"));
        check("0 5 $1 /dev/pts/1\n0 7 $1 /dev/pts/2", Some("/dev/pts/2"));
    }

    #[test]
    fn what_to_type_is_safe_to_type() {
        let pane = TmuxPane { socket: "/a b/s".into(), server: "1".into(), pane: "%3".into() };
        assert_eq!(pane.attach("work"), "tmux -S '/a b/s' attach -t work");
        let own = format!("/tmp/tmux-{}/default", rustix::process::geteuid().as_raw());
        let pane = TmuxPane { socket: own, ..pane };
        assert_eq!(pane.attach("it's; rm -rf /"), r"tmux attach -t 'it'\''s; rm -rf /'");
        assert_eq!(pane.attach(""), "tmux attach -t ''");
    }
}
