//! Agents whose hooks are not set up: what they say to their pane is read by a program behind `pipe-pane`. It ends with the
//! agent. A pane that is piped already is left alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringer_core::message::{SurfaceId, TmuxSurface};
use ringer_platform::shell_word;

use crate::look::Look;
use crate::program::RunningClient;
use crate::server::{TmuxError, TmuxServer};

/// The process that reads a pane.
const MARK: &str = "@ringer_scan";

/// How often it is tried to set it.
const SET_TRIES: usize = 5;

/// How panes are read.
pub struct Scanning {
    /// The program `ringer`.
    pub program: PathBuf,
    /// Whether a client, by its name, has to be read: its hooks report nothing.
    pub is_needed: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The clients of a server that were seen, each with its pane.
#[derive(Debug, Default)]
pub(crate) struct SeenClients(BTreeMap<String, u32>);

impl SeenClients {
    /// Begins to read the panes in which another client runs.
    pub(crate) fn scan(
        &mut self,
        server: &TmuxServer,
        look: &Look,
        home: &Path,
        scanning: &Scanning,
    ) -> Result<(), TmuxError> {
        self.0.retain(|pane, _| look.panes.contains_key(pane));
        for (id, pane) in look.panes.iter().filter(|(_, pane)| !pane.is_piped) {
            let Some(client) = RunningClient::on_terminal_of(pane.pid) else { continue };
            if self.0.insert(id.clone(), client.pid) == Some(client.pid) || !(scanning.is_needed)(client.name)
            {
                continue;
            }
            let socket = server.socket().to_string_lossy();
            let surface = TmuxSurface { socket: &socket, server: &look.pid, pane: id }.id();
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

/// What tmux gives to a shell. It expands formats and times in it first.
fn command(program: &Path, home: &Path, surface: &SurfaceId, pid: u32) -> String {
    let (home, program) = (shell_word(&home.to_string_lossy()), shell_word(&program.to_string_lossy()));
    let surface = shell_word(surface.as_str());
    let command = format!(
        "RINGER_HOME={home} exec {program} term scan --surface {surface} --while {pid} >/dev/null 2>&1"
    );
    command.replace('#', "##").replace('%', "%%")
}

/// That this process reads a pane, noted in tmux for as long as it does.
#[derive(Debug)]
pub struct PaneReaderMark {
    server: TmuxServer,
    pane: String,
}

impl PaneReaderMark {
    /// Of the pane that a surface is.
    pub fn set(surface: &SurfaceId) -> Option<Self> {
        let TmuxSurface { socket, pane, .. } = surface.tmux()?;
        let mark = Self { server: TmuxServer::at(socket), pane: pane.to_owned() };
        let own = std::process::id().to_string();
        let words = ["set-option", "-pq", "-t", &mark.pane, MARK, &own];
        // A machine that has much to do may be late. Without the mark, only `ringer setup tmux --remove` does not know of it.
        let mut tries = (0..SET_TRIES).map(|_| mark.server.run(&words));
        tries.find(|set| !matches!(set, Err(TmuxError::Late)));
        Some(mark)
    }

    /// The title that the program had set before it was read; without the mark that Ringer may have put in front of it.
    pub fn title(&self) -> Option<String> {
        let title = "#{?#{==:#{pane_title},#{@ringer_marked}},#{@ringer_title},#{pane_title}}";
        let title = self.server.run(&["display-message", "-p", "-t", &self.pane, title]).ok()?;
        Some(title.trim_end_matches('\n').to_owned())
    }
}

impl Drop for PaneReaderMark {
    fn drop(&mut self) {
        // Another one may read the pane by now.
        let is_own = format!("#{{==:#{{{MARK}}},{}}}", std::process::id());
        let unset = format!("set-option -pqu -t {} {MARK}", self.pane);
        let _ = self.server.run(&["if-shell", "-F", "-t", &self.pane, &is_own, &unset]);
    }
}

/// Ends all reading.
pub(crate) fn end_scans(server: &TmuxServer) -> Result<(), TmuxError> {
    let listed = server.run(&["list-panes", "-a", "-F", &format!("#{{pane_id}} #{{?{MARK},1,0}}")])?;
    for pane in listed.lines().filter_map(|line| line.strip_suffix(" 1")) {
        server.run(&["pipe-pane", "-t", pane, ";", "set-option", "-pqu", "-t", pane, MARK])?;
    }
    Ok(())
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
}
