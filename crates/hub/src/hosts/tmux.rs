//! tmux panes. The id of a surface is enough to find its pane, so a hub can find panes that an earlier hub knew.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_journal::ProcessStat;
use ringer_platform::shell_word;
use ringer_term::{Env, sanitise_line};
use ringer_tmux::{TmuxError, TmuxServer};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The most servers that are asked at once for their panes. A person has one or two.
const MAX_SERVERS: usize = 8;

/// The format of `list-panes`. The name comes last because it may contain spaces. tmux prints tabs as underscores.
const PANE: &str = "#{pid} #{pane_id} #{session_attached} #{session_id} #{window_id} #{window_index} #{pane_tty} #{session_name}";
/// The format of `list-clients`. A client in control mode is a program and shows nothing.
const CLIENT: &str = "#{client_control_mode} #{client_activity} #{session_id} #{client_name}";

/// A tmux pane, as named by the id of its surface.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TmuxPane {
    socket: String,
    /// The pid of the server. Pane numbers are unique only within a server, and another one may own the socket by now.
    pub(crate) server: String,
    pub(crate) pane: String,
}

/// The reason why a place could not be brought to the front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreachable {
    pub(crate) why: String,
    /// A command that helps the person.
    pub(crate) hint: Option<String>,
    /// The place no longer exists.
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

/// The current position of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    session: String,
    session_name: String,
    window: String,
    window_index: String,
    tty: String,
}

/// A row of [`PANE`]. tmux prints a pane once for each session that contains its window.
#[derive(Debug)]
struct PaneRow {
    server: String,
    pane: String,
    is_attached: bool,
    found: Found,
}

impl PaneRow {
    fn parse_all(listed: &str) -> Vec<Self> {
        listed.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(8, ' ');
        let mut next = || fields.next().map(str::to_owned);
        let (server, pane, attached) = (next()?, next()?, next()?);
        let (session, window, window_index, tty) = (next()?, next()?, next()?, next()?);
        let found = Found { session, session_name: next()?, window, window_index, tty };
        Some(Self { server, pane, is_attached: attached != "0", found })
    }
}

impl TmuxPane {
    /// Returns the pane of a surface, if the surface is one.
    pub fn of(surface: &SurfaceId) -> Option<Self> {
        let TmuxSurface { socket, server, pane } = surface.tmux()?;
        Some(Self { socket: socket.to_owned(), server: server.to_owned(), pane: pane.to_owned() })
    }

    /// Brings the pane to the front, in a client that shows its session or else in the most recently used one.
    pub(crate) async fn select(&self) -> Result<(), Unreachable> {
        let found = self.find().await?;
        let window = format!("{}:{}", found.session, found.window);
        // Done even if no client is attached, so that the next one to attach finds the pane selected.
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

    /// Returns true if a process with this environment was started in the pane.
    pub(crate) fn is_around(&self, environment: &Env) -> bool {
        let server = environment.get("TMUX").and_then(|tmux| tmux.rsplit(',').nth(1));
        server == Some(&self.server) && environment.get("TMUX_PANE") == Some(&self.pane)
    }

    /// Returns the terminal device of the pane.
    pub(crate) async fn tty(&self) -> Result<String, Unreachable> {
        self.find().await.map(|found| found.tty)
    }

    /// Returns the current window of each pane, by session and number: `main:3`. Asks each server once. Leaves out panes that are
    /// closed or whose server does not answer in time.
    pub async fn windows(panes: Vec<Self>, within: Duration) -> HashMap<Self, String> {
        let mut servers: BTreeMap<String, Vec<Self>> = BTreeMap::new();
        for pane in panes {
            servers.entry(pane.socket.clone()).or_default().push(pane);
        }
        let mut asked = JoinSet::new();
        for panes in servers.into_values().take(MAX_SERVERS) {
            asked.spawn(timeout(within, Self::windows_of_one_server(panes)));
        }
        let mut windows = HashMap::new();
        while let Some(answer) = asked.join_next().await {
            windows.extend(answer.into_iter().flatten().flatten());
        }
        windows
    }

    async fn windows_of_one_server(panes: Vec<Self>) -> Vec<(Self, String)> {
        let rows = match panes.first() {
            Some(pane) => pane.list().await.unwrap_or_default(),
            None => Vec::new(),
        };
        let window = |pane: Self| {
            let found = pane.in_rows(&rows)?;
            let window = format!("{}:{}", found.session_name, found.window_index);
            Some((pane, window))
        };
        panes.into_iter().filter_map(window).collect()
    }

    /// Lists all panes of the server that owns the socket now.
    async fn list(&self) -> Result<Vec<PaneRow>, Unreachable> {
        let listed = self.run(&["list-panes", "-a", "-F", PANE]).await?;
        Ok(PaneRow::parse_all(&listed))
    }

    /// Finds the pane in the rows. If its window is in several sessions, prefers an attached one.
    fn in_rows<'a>(&self, rows: &'a [PaneRow]) -> Option<&'a Found> {
        let own = rows.iter().filter(|row| row.server == self.server && row.pane == self.pane);
        own.max_by_key(|row| row.is_attached).map(|row| &row.found)
    }

    async fn find(&self) -> Result<Found, Unreachable> {
        let ended = || Unreachable::gone(format!("its tmux server (pid {}) has ended", self.server));
        let rows = self.list().await.map_err(|why| if self.server_runs() { why } else { ended() })?;
        if rows.first().is_none_or(|row| row.server != self.server) {
            return Err(ended());
        }
        let found = self.in_rows(&rows).cloned();
        found.ok_or_else(|| Unreachable::gone(format!("its tmux pane {} is closed", self.pane)))
    }

    /// Returns true if the tmux server is still running.
    pub(crate) fn server_runs(&self) -> bool {
        self.server.parse().is_ok_and(|pid: u32| ProcessStat::of(pid).is_some())
    }

    /// The command that shows a session.
    fn attach(&self, session_name: &str) -> String {
        let default = format!("/tmp/tmux-{}/default", rustix::process::geteuid().as_raw());
        let socket =
            if self.socket == default { String::new() } else { format!("-S {} ", shell_word(&self.socket)) };
        sanitise_line(&format!("tmux {socket}attach -t {}", shell_word(session_name)))
    }

    /// Runs a command on the pane's server.
    pub(crate) async fn command(&self, words: &[&str]) -> Result<String, TmuxError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(TmuxServer::at(&self.socket), words).await
    }

    async fn run(&self, words: &[&str]) -> Result<String, Unreachable> {
        let failed = |error: TmuxError| Unreachable::new(sanitise_line(&error.to_string()));
        self.command(words).await.map_err(failed)
    }
}

/// Runs a command on a server, on a thread that may block.
pub(crate) async fn run(server: TmuxServer, words: Vec<String>) -> Result<String, TmuxError> {
    let ran = tokio::task::spawn_blocking(move || server.run(&words)).await;
    ran.unwrap_or_else(|error| Err(TmuxError::Start(std::io::Error::other(error))))
}

/// Returns the client that shows this session, or else the most recently used one.
fn best_client<'a>(clients: &'a str, session: &str) -> Option<&'a str> {
    let rows = clients.lines().filter_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let (control, activity, shown) = (fields.next()?, fields.next()?, fields.next()?);
        (control != "1").then_some(((shown == session, activity.parse::<u64>().ok()), fields.next()?))
    });
    rows.max_by(|one, two| one.0.cmp(&two.0)).map(|(_, name)| name)
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
    fn a_pane_is_found_by_its_server_and_number_in_the_session_that_is_looked_at() {
        let rows = PaneRow::parse_all(
            "77 %3 0 $1 @2 5 /dev/pts/4 main\n77 %3 1 $2 @2 6 /dev/pts/4 the other\n\nno row\n77 %4 0 $1 @2 5  main\n",
        );
        let check = |surface: &str, expected: Option<(&str, &str)>| {
            let found = TmuxPane::of(&SurfaceId::new(surface)).unwrap();
            let found = found.in_rows(&rows).map(|found| (&*found.session_name, &*found.window_index));
            assert_eq!(found, expected, "{surface}");
        };
        check("tmux:s:77:%3", Some(("the other", "6")));
        check("tmux:s:77:%4", Some(("main", "5")));
        check("tmux:s:77:%5", None);
        check("tmux:s:78:%3", None);
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
