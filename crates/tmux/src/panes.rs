//! Panes as named by the ids of their surfaces: bringing them to the front, and the marks in their titles. The id is enough to
//! find a pane, so panes of servers without a host work too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_ipc::part::{PaneControl, Part, TitleOutcome, Unreachable};
use ringer_journal::ProcessStat;
use ringer_platform::shell_word;
use ringer_term::outer::tmux_query;
use ringer_term::{Env, OuterTerminal, sanitise_line};

use crate::server::{TmuxError, TmuxServer};

/// The most servers that are asked at once for their panes. A person has one or two.
const MAX_SERVERS: usize = 8;

/// The format of `list-panes`. The name comes last because it may contain spaces. tmux prints tabs as underscores.
const PANE: &str = "#{pid} #{pane_id} #{session_attached} #{session_id} #{window_id} #{window_index} #{pane_tty} #{session_name}";
/// The format of `list-clients`. A client in control mode is a program and shows nothing.
const CLIENT: &str = "#{client_control_mode} #{client_activity} #{session_id} #{client_name}";

/// The part of a hub that controls the panes of tmux.
#[derive(Debug, Clone, Copy)]
pub struct TmuxPanes;

impl Part for TmuxPanes {
    fn pane_control(&self) -> Option<Arc<dyn PaneControl>> {
        Some(Arc::new(*self))
    }
}

impl PaneControl for TmuxPanes {
    fn name(&self) -> &'static str {
        "tmux"
    }

    fn focus(&self, surface: &SurfaceId) -> Result<(), Unreachable> {
        TmuxPane::of(surface).ok_or_else(no_pane)?.focus()
    }

    fn tty(&self, surface: &SurfaceId) -> Result<String, Unreachable> {
        Ok(TmuxPane::of(surface).ok_or_else(no_pane)?.position()?.tty)
    }

    fn mark_title(&self, surface: &SurfaceId, set: bool) -> TitleOutcome {
        match TmuxPane::of(surface) {
            Some(pane) if set => pane.mark(),
            Some(pane) => pane.unmark(),
            None => TitleOutcome::Gone,
        }
    }

    fn outer_terminal(&self, environment: &Env) -> Option<OuterTerminal> {
        outer_terminal(environment)
    }
}

/// Asks the tmux server of a process with this environment for the terminal around it.
pub fn outer_terminal(environment: &Env) -> Option<OuterTerminal> {
    let server = environment.get("TMUX").and_then(TmuxServer::from_variable)?;
    let answer = server.run(&tmux_query(environment.get("TMUX_PANE"))).ok()?;
    OuterTerminal::from_tmux(&answer)
}

fn no_pane() -> Unreachable {
    Unreachable::new("it is no pane of tmux")
}

/// Returns the current window of each surface that is a pane, by session and number: `main:3`. Asks each server once. Leaves out
/// panes that are closed or whose server does not answer in time.
pub fn windows_of<'a>(
    surfaces: impl IntoIterator<Item = &'a SurfaceId>,
    within: Duration,
) -> HashMap<SurfaceId, String> {
    let mut servers: BTreeMap<&str, Vec<SurfaceId>> = BTreeMap::new();
    for surface in surfaces {
        if let Some(TmuxSurface { socket, .. }) = surface.tmux() {
            servers.entry(socket).or_default().push(surface.clone());
        }
    }
    let deadline = Instant::now() + within;
    let (sender, answers) = channel();
    for (socket, panes) in servers.into_iter().take(MAX_SERVERS) {
        let (server, sender) = (TmuxServer::at(socket), sender.clone());
        // A server that hangs keeps its thread, which nobody waits for.
        thread::spawn(move || sender.send(windows_of_one_server(&server, panes)));
    }
    drop(sender);
    let mut windows = HashMap::new();
    while let Ok(answer) = answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        windows.extend(answer);
    }
    windows
}

fn windows_of_one_server(server: &TmuxServer, surfaces: Vec<SurfaceId>) -> Vec<(SurfaceId, String)> {
    let rows = PaneRow::list(server).unwrap_or_default();
    let window = |surface: SurfaceId| {
        let position = TmuxPane::of(&surface)?.in_rows(&rows)?;
        let window = format!("{}:{}", position.session_name, position.window_index);
        Some((surface, window))
    };
    surfaces.into_iter().filter_map(window).collect()
}

/// The current position of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PanePosition {
    session: String,
    session_name: String,
    window: String,
    window_index: String,
    tty: String,
}

/// A line that tmux prints for [`PANE`]: one for each session that contains the window of the pane.
#[derive(Debug)]
struct PaneRow {
    server: String,
    pane: String,
    is_attached: bool,
    position: PanePosition,
}

impl PaneRow {
    /// Lists all panes of the server that owns the socket now.
    fn list(server: &TmuxServer) -> Result<Vec<Self>, TmuxError> {
        Ok(Self::parse_all(&server.run(&["list-panes", "-a", "-F", PANE])?))
    }

    fn parse_all(listed: &str) -> Vec<Self> {
        listed.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(8, ' ');
        let mut next = || fields.next().map(str::to_owned);
        let (server, pane, attached) = (next()?, next()?, next()?);
        let (session, window, window_index, tty) = (next()?, next()?, next()?, next()?);
        let position = PanePosition { session, session_name: next()?, window, window_index, tty };
        Some(Self { server, pane, is_attached: attached != "0", position })
    }
}

/// A tmux pane.
struct TmuxPane<'a> {
    /// The server that owns the socket now.
    server: TmuxServer,
    id: TmuxSurface<'a>,
}

impl<'a> TmuxPane<'a> {
    fn of(surface: &'a SurfaceId) -> Option<Self> {
        let id = surface.tmux()?;
        Some(Self { server: TmuxServer::at(id.socket), id })
    }

    /// Brings the pane to the front, in a client that shows its session or else in the most recently used one.
    fn focus(&self) -> Result<(), Unreachable> {
        let position = self.position()?;
        let window = format!("{}:{}", position.session, position.window);
        // Done even if no client is attached, so that the next one to attach finds the pane selected.
        self.run(&["select-window", "-t", &window, ";", "select-pane", "-t", self.id.pane])?;
        let clients = self.run(&["list-clients", "-F", CLIENT])?;
        let Some(client) = best_client(&clients, &position.session) else {
            let why = format!("no terminal shows tmux session {}", sanitise_line(&position.session_name));
            return Err(Unreachable {
                hint: Some(self.attach_command(&position.session_name)),
                ..Unreachable::new(why)
            });
        };
        self.run(&["switch-client", "-c", client, "-t", &window]).map(drop)
    }

    fn position(&self) -> Result<PanePosition, Unreachable> {
        let TmuxSurface { server, pane, .. } = self.id;
        let ended = || Unreachable::gone(format!("its tmux server (pid {server}) has ended"));
        let rows = PaneRow::list(&self.server);
        let rows = rows.map_err(|error| if is_running(server) { failed(&error) } else { ended() })?;
        if rows.first().is_none_or(|row| row.server != server) {
            return Err(ended());
        }
        let position = self.in_rows(&rows).cloned();
        position.ok_or_else(|| Unreachable::gone(format!("its tmux pane {pane} is closed")))
    }

    /// Finds the pane in the rows. If its window is in several sessions, prefers an attached one.
    fn in_rows<'r>(&self, rows: &'r [PaneRow]) -> Option<&'r PanePosition> {
        let own = rows.iter().filter(|row| row.server == self.id.server && row.pane == self.id.pane);
        own.max_by_key(|row| row.is_attached).map(|row| &row.position)
    }

    /// The command that shows a session.
    fn attach_command(&self, session_name: &str) -> String {
        let default = format!("/tmp/tmux-{}/default", rustix::process::geteuid().as_raw());
        let socket = match self.id.socket {
            socket if socket == default => String::new(),
            socket => format!("-S {} ", shell_word(socket)),
        };
        sanitise_line(&format!("tmux {socket}attach -t {}", shell_word(session_name)))
    }

    /// Puts the mark in front of the title. tmux stores both titles in options of the pane.
    fn mark(&self) -> TitleOutcome {
        let pane = self.id.pane;
        let commands = format!(
            "set-option -p -t '{pane}' -F @ringer_title '#{{pane_title}}' ; \
             set-option -p -t '{pane}' -F @ringer_marked '● #{{pane_title}}' ; \
             select-pane -t '{pane}' -T '#{{@ringer_marked}}'"
        );
        let unmarked = "#{!=:#{pane_title},#{@ringer_marked}}";
        match self.run_if(unmarked, &commands) {
            Ok(()) => TitleOutcome::Set,
            Err(_) => TitleOutcome::Gone,
        }
    }

    /// Restores the title, unless the program has set another one meanwhile.
    fn unmark(&self) -> TitleOutcome {
        let pane = self.id.pane;
        let commands = format!(
            "if-shell -F -t '{pane}' '#{{==:#{{pane_title}},#{{@ringer_marked}}}}' \
             \"select-pane -t '{pane}' -T '#{{@ringer_title}}'\" ; \
             set-option -p -u -t '{pane}' @ringer_title ; set-option -p -u -t '{pane}' @ringer_marked"
        );
        match self.run_if("1", &commands) {
            Err(TmuxError::TimedOut) => TitleOutcome::NotYet,
            // A pane or server that is gone has no title.
            Ok(()) | Err(_) => TitleOutcome::Gone,
        }
    }

    /// Runs commands if the server process is unchanged and `condition` holds for the pane.
    fn run_if(&self, condition: &str, commands: &str) -> Result<(), TmuxError> {
        let TmuxSurface { server, pane, .. } = self.id;
        let same = format!("#{{&&:#{{==:#{{pid}},{server}}},{condition}}}");
        self.server.run(&["if-shell", "-F", "-t", pane, &same, commands]).map(drop)
    }

    fn run(&self, words: &[&str]) -> Result<String, Unreachable> {
        self.server.run(words).map_err(|error| failed(&error))
    }
}

fn failed(error: &TmuxError) -> Unreachable {
    Unreachable::new(sanitise_line(&error.to_string()))
}

fn is_running(pid: &str) -> bool {
    pid.parse().is_ok_and(|pid: u32| ProcessStat::of(pid).is_some())
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
    fn a_pane_is_found_by_its_server_and_number_in_the_session_that_is_looked_at() {
        let rows = PaneRow::parse_all(
            "77 %3 0 $1 @2 5 /dev/pts/4 main\n77 %3 1 $2 @2 6 /dev/pts/4 the other\n\nno row\n77 %4 0 $1 @2 5  main\n",
        );
        let check = |surface: &str, expected: Option<(&str, &str)>| {
            let surface = SurfaceId::new(surface);
            let position = TmuxPane::of(&surface).unwrap().in_rows(&rows);
            let position = position.map(|position| (&*position.session_name, &*position.window_index));
            assert_eq!(position, expected, "{surface}");
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
        let attach = |socket: &str, session: &str| {
            let surface = TmuxSurface { socket, server: "1", pane: "%3" }.id();
            TmuxPane::of(&surface).unwrap().attach_command(session)
        };
        assert_eq!(attach("/a b/s", "work"), "tmux -S '/a b/s' attach -t work");
        let own = format!("/tmp/tmux-{}/default", rustix::process::geteuid().as_raw());
        assert_eq!(attach(&own, "it's; rm -rf /"), r"tmux attach -t 'it'\''s; rm -rf /'");
        assert_eq!(attach(&own, ""), "tmux attach -t ''");
    }
}
