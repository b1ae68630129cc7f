//! Agents whose hooks are not installed: `ringer term scan` reads their output behind `pipe-pane`, and exits with the agent. A
//! pane that already has a pipe is left alone. An agent is recognised by the foreground program of its pane.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_platform::shell_word;

use crate::server::{TmuxError, TmuxServer};
use crate::snapshot::Snapshot;

/// The pane option with the pid of the process that reads the pane.
const MARK: &str = "@ringer_scan";

/// Attempts to set the mark.
const SET_TRIES: usize = 5;

/// How to read panes.
pub struct Scanning {
    /// The path of `ringer`.
    pub program: PathBuf,
    /// Returns true if the client of this name has to be read, because its hooks are not installed.
    pub is_needed: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The pid of the client in each pane, once it was considered for scanning.
#[derive(Debug, Default)]
pub(crate) struct ScannedClients(BTreeMap<String, u32>);

impl ScannedClients {
    /// Starts a reader for each pane with a new client.
    pub(crate) fn scan(
        &mut self,
        server: &TmuxServer,
        snapshot: &Snapshot,
        home: &Path,
        scanning: &Scanning,
    ) -> Result<(), TmuxError> {
        self.0.retain(|pane, _| snapshot.panes.contains_key(pane));
        for (id, pane) in snapshot.panes.iter().filter(|(_, pane)| !pane.is_piped) {
            let Some(client) = RunningClient::on_terminal_of(pane.pid) else { continue };
            if self.0.insert(id.clone(), client.pid) == Some(client.pid) || !(scanning.is_needed)(client.name)
            {
                continue;
            }
            let socket = server.socket().to_string_lossy();
            let surface = TmuxSurface { socket: &socket, server: &snapshot.pid, pane: id }.id();
            let command = command(&scanning.program, home, &surface, client.pid);
            match server.run(&["pipe-pane", "-t", id, &command]) {
                // The pane was closed meanwhile.
                Ok(_) | Err(TmuxError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The shell command for `pipe-pane`. tmux expands formats and `strftime` sequences in it first, so they are escaped.
fn command(program: &Path, home: &Path, surface: &SurfaceId, pid: u32) -> String {
    let (home, program) = (shell_word(&home.to_string_lossy()), shell_word(&program.to_string_lossy()));
    let surface = shell_word(surface.as_str());
    let command = format!(
        "RINGER_HOME={home} exec {program} term scan --surface {surface} --while {pid} >/dev/null 2>&1"
    );
    command.replace('#', "##").replace('%', "%%")
}

/// Marks a pane in tmux while this process reads it.
#[derive(Debug)]
pub struct PaneReaderMark {
    server: TmuxServer,
    pane: String,
}

impl PaneReaderMark {
    /// Marks the pane of a surface.
    pub fn set(surface: &SurfaceId) -> Option<Self> {
        let TmuxSurface { socket, pane, .. } = surface.tmux()?;
        let mark = Self { server: TmuxServer::at(socket), pane: pane.to_owned() };
        let own = std::process::id().to_string();
        let words = ["set-option", "-pq", "-t", &mark.pane, MARK, &own];
        // A busy machine may be slow, so try again. Without the mark, `ringer setup tmux --remove` does not end the pipe.
        let mut tries = (0..SET_TRIES).map(|_| mark.server.run(&words));
        tries.find(|set| !matches!(set, Err(TmuxError::TimedOut)));
        Some(mark)
    }

    /// The title that the program has set, without the mark that Ringer may have put in front of it.
    pub fn title(&self) -> Option<String> {
        let title = "#{?#{==:#{pane_title},#{@ringer_marked}},#{@ringer_title},#{pane_title}}";
        let title = self.server.run(&["display-message", "-p", "-t", &self.pane, title]).ok()?;
        Some(title.trim_end_matches('\n').to_owned())
    }
}

impl Drop for PaneReaderMark {
    fn drop(&mut self) {
        // Another process may read the pane by now.
        let is_own = format!("#{{==:#{{{MARK}}},{}}}", std::process::id());
        let unset = format!("set-option -pqu -t {} {MARK}", self.pane);
        let _ = self.server.run(&["if-shell", "-F", "-t", &self.pane, &is_own, &unset]);
    }
}

/// Closes the pipes of all marked panes.
pub(crate) fn end_scans(server: &TmuxServer) -> Result<(), TmuxError> {
    let listed = server.run(&["list-panes", "-a", "-F", &format!("#{{pane_id}} #{{?{MARK},1,0}}")])?;
    for pane in listed.lines().filter_map(|line| line.strip_suffix(" 1")) {
        server.run(&["pipe-pane", "-t", pane, ";", "set-option", "-pqu", "-t", pane, MARK])?;
    }
    Ok(())
}

/// The program names of the clients whose titles and notifications Ringer understands.
const CLIENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A client that runs in a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunningClient {
    name: &'static str,
    pid: u32,
}

impl RunningClient {
    /// The client in the foreground of the terminal of a process. Needs `/proc`.
    fn on_terminal_of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let leader = foreground(&stat)?;
        // The leader may be a shell or a script that started the client.
        let children =
            || fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap_or_default();
        Self::of(leader).or_else(|| children().split_whitespace().find_map(|pid| Self::of(pid.parse().ok()?)))
    }

    fn of(pid: u32) -> Option<Self> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Some(Self { name: client(name.trim(), &arguments)?, pid })
    }
}

/// The foreground process group of a terminal, from the `/proc/PID/stat` of one of its processes.
fn foreground(stat: &str) -> Option<u32> {
    // The name in parentheses may contain anything, so count from its end.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(5)?.parse().ok()
}

/// Identifies a client by the name and the arguments of a process: a script is run by a shell or by Node.js.
fn client(name: &str, arguments: &[u8]) -> Option<&'static str> {
    let words = arguments.split(|byte| *byte == 0).take(2).filter_map(|word| std::str::from_utf8(word).ok());
    let files = words.filter_map(|word| Path::new(word).file_name()?.to_str());
    let mut names = [name].into_iter().chain(files);
    names.find_map(|name| CLIENTS.into_iter().find(|client| *client == name.trim_end_matches(".js")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_read_as_a_format_or_a_command() {
        let surface = TmuxSurface { socket: "/tmp/#{x}/it's", server: "7", pane: "%3" }.id();
        let said = command(Path::new("/my bin/ringer"), Path::new("/home/%H"), &surface, 9);
        assert_eq!(
            said,
            r"RINGER_HOME='/home/%%H' exec '/my bin/ringer' term scan --surface 'tmux:/tmp/##{x}/it'\''s:7:%%3' --while 9 >/dev/null 2>&1"
        );
    }

    #[test]
    fn a_client_is_known_by_its_name_or_as_the_script_that_is_run() {
        for (name, arguments, expected) in [
            ("claude", "claude\0--resume\0", Some("claude")),
            ("node", "node\0/usr/lib/bin/gemini\0-x\0", Some("gemini")),
            ("node", "node\0/opt/bin/codex.js\0", Some("codex")),
            ("claude", "/bin/sh\0./claude\0", Some("claude")),
            ("vim", "vim\0src/claude.rs\0", None),
            ("sh", "sh\0-c\0claude\0", None),
            ("", "", None),
        ] {
            assert_eq!(client(name, arguments.as_bytes()), expected, "{name} {arguments:?}");
        }
    }

    #[test]
    fn the_foreground_of_a_terminal_is_read_however_a_process_is_called() {
        assert_eq!(foreground("7 (a ) b (c) S 5 7 6 34817 4711 0 0"), Some(4711));
        for none in ["", "7 (x", "7 (x) S 5", "7 (x) S 5 7 6 0 -1 0"] {
            assert_eq!(foreground(none), None, "{none}");
        }
    }
}
