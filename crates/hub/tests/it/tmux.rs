//! Panes of a real tmux.

use std::path::PathBuf;
use std::process::Command;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ringer_core::{Draft, Origin};
use serde_json::json;

use crate::hub::{TestHub, draft, until};

/// A tmux server with somebody who looks at it. Both end with the test.
struct Tmux {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    client: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

impl Tmux {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("tmux");
        let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
        let mut command = CommandBuilder::new("tmux");
        command.args(["-f", "/dev/null", "-S"]);
        command.arg(&socket);
        command.args(["new-session", "-s", "one", "sleep 1000"]);
        command.env("TERM", "xterm-256color");
        command.env_remove("TMUX");
        let client = pty.slave.spawn_command(command).expect("tmux: `cargo xtask test` installs it");
        let tmux = Self { _directory: directory, socket, client, _master: pty.master };
        until("somebody looks at it", || !tmux.tell(&["list-clients"]).is_empty());
        tmux
    }

    /// Tells it something. Gives what it says.
    fn tell(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output().expect("tmux");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// What its client looks at: session and pane.
    fn looked_at(&self) -> String {
        self.tell(&["list-clients", "-F", "#{client_session} #{pane_id}"])
    }

    fn says(&self, pane: &str, server: &str) -> Draft {
        let surface = format!("tmux:{}:{server}:{pane}", self.socket.display());
        let origin = Origin { surface: Some(surface), pane: Some(pane.to_owned()), ..Origin::default() };
        Draft { origin, ..draft("look here") }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
        // It ends with its server.
        let _ = self.client.wait();
    }
}

#[test]
fn going_to_a_pane_selects_its_session_its_window_and_itself() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let here = tmux.looked_at();
    tmux.tell(&["new-session", "-d", "-s", "two", "sleep 1000"]);
    tmux.tell(&["new-window", "-d", "-t", "two", "sleep 1000"]);
    let pane = tmux.tell(&["split-window", "-d", "-t", "two:1", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    assert_ne!(tmux.looked_at(), format!("two {pane}"));
    let id = hub.append(&tmux.says(&pane, &server));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"], json!({ "focused": true, "host": "tmux" }));
    assert_eq!(tmux.looked_at(), format!("two {pane}"));
    assert!(hub.is_read(&id));
    tmux.tell(&["switch-client", "-t", "one"]);
    let surface = format!("tmux:{}:{server}:{pane}", tmux.socket.display());
    let went = hub.call("surface.focus", &json!({ "surface_id": surface }));
    assert_eq!((went, tmux.looked_at()), (json!({ "focused": true, "host": "tmux" }), format!("two {pane}")));
    // Another server may have that socket now, and its panes the same numbers.
    let first = here.split(' ').next_back().expect("a pane");
    let id = hub.append(&tmux.says(first, "1"));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"]["why"], "that tmux server is gone");
    assert_eq!(tmux.looked_at(), format!("two {pane}"), "it was left alone");
    // A pane that was closed.
    let id = hub.append(&tmux.says("%99", &server));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    let why = opened["focus"]["why"].as_str().expect("a reason");
    assert!(why.contains("can't find"), "{why}");
}
