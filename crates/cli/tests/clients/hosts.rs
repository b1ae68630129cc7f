//! Where a client runs: under `ringer run`, in a pane of tmux, or in a pane of Ringer. The person goes there and away again.

use serde_json::Value;
use test_support::until_within;

use crate::environment::{ClientEnvironment, DEADLINE, RINGER, SENDER};
use crate::terminal::Terminal;

/// What a terminal reports when it gets the focus, and when it loses it.
const FOCUS_IN: &str = "\x1b[I";
const FOCUS_OUT: &str = "\x1b[O";

/// The panes of tmux: where the person is first, and where the client is.
const ELSEWHERE: &str = "%0";
const PANE: &str = "%1";

/// What runs where the person is first. The key that ends a client may come a second time, when the client's pane is closed.
const NO_AGENT: &str = "trap '' INT; exec sleep 1000";

/// What the client's pane of Ringer is called, and the keys to it and back.
const PANE_NAME: &str = "the client";
const GO_RIGHT: &str = "\x07l";
const GO_LEFT: &str = "\x07h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// `ringer run -- CLIENT`.
    Run,
    /// A pane of tmux, after `ringer setup tmux`.
    Tmux,
    /// A pane of `ringer open`.
    Panes,
}

/// A client in a terminal that reports focus. The person is not there first.
pub(crate) struct HostedClient<'a> {
    environment: &'a ClientEnvironment,
    host: Host,
    terminal: Terminal,
}

impl<'a> HostedClient<'a> {
    #[track_caller]
    pub(crate) fn start(environment: &'a ClientEnvironment, host: Host, command: &[&str]) -> Self {
        let terminal = match host {
            Host::Run => {
                let mut terminal = environment.open_terminal(RINGER, &[&["run", "--"], command].concat());
                terminal.until_drawn("\x1b[?1004h");
                terminal.press(FOCUS_OUT);
                terminal
            }
            Host::Tmux => {
                let tell = |arguments: &[&str]| tell_tmux(environment, arguments);
                tell(&["new-session", "-d", "-s", "main", "-x", "120", "-y", "40", NO_AGENT]);
                // A lone Escape is passed on at once.
                tell(&["set-option", "-s", "escape-time", "0"]);
                environment.ringer(&["setup", "tmux", "--yes"]);
                let arguments = ["-u", "-L", "ringer", "attach", "-t", "main"];
                let mut terminal = environment.open_terminal("tmux", &arguments);
                until_within(DEADLINE, "a terminal is attached", || !tell(&["list-clients"]).is_empty());
                terminal.press(FOCUS_IN);
                let directory = environment.project();
                let directory = directory.to_str().expect("a path in UTF-8");
                tell(&[&["split-window", "-d", "-l", "34", "-c", directory], command].concat());
                terminal
            }
            Host::Panes => {
                let arguments = ["open", "--name", "elsewhere", "--", "sh", "-c", NO_AGENT];
                let mut terminal = environment.open_terminal(RINGER, &arguments);
                terminal.until_drawn("elsewhere");
                terminal.press(FOCUS_IN);
                environment.ringer(&[&["open", "--detached", "--name", PANE_NAME, "--"], command].concat());
                until_within(DEADLINE, "the pane is open", || pane(environment).is_some());
                terminal
            }
        };
        Self { environment, host, terminal }
    }

    /// The person goes to the client.
    #[track_caller]
    pub(crate) fn go_there(&mut self) {
        match self.host {
            Host::Run => self.terminal.press(FOCUS_IN),
            Host::Tmux => _ = tell_tmux(self.environment, &["select-pane", "-t", PANE]),
            Host::Panes => self.terminal.press(GO_RIGHT),
        }
    }

    /// The person goes somewhere else, and Ringer knows it: what comes from the client's place is unread then.
    #[track_caller]
    pub(crate) fn go_away(&mut self) {
        match self.host {
            Host::Run => self.terminal.press(FOCUS_OUT),
            Host::Tmux => _ = tell_tmux(self.environment, &["select-pane", "-t", ELSEWHERE]),
            Host::Panes => self.terminal.press(GO_LEFT),
        }
        let surface = self.environment.of_agents("surface").pop().expect("a surface");
        let mut count = 0;
        until_within(DEADLINE, "the person is elsewhere", || {
            // The same text again would be the same event.
            count += 1;
            let text = format!("are you there? ({count})");
            let probe = ["notify", "--json", "--from", SENDER, "--kind", "status", &text];
            let mut command = self.environment.command(RINGER, &probe);
            let output = command.env("RINGER_SURFACE", &surface).output().expect("it runs");
            let sent: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let is_read = until_listed(self.environment, &sent["id"])["is_read"] == true;
            self.environment.ringer(&["read", sent["id"].as_str().expect("an id")]);
            !is_read
        });
        until_within(DEADLINE, "nothing is unread there", || !self.rings());
    }

    /// The person ends the client, and does not look at how it ends.
    #[track_caller]
    pub(crate) fn quit(&mut self) {
        if self.host == Host::Run {
            self.go_away();
        }
        let (environment, host) = (self.environment, self.host);
        // The first one empties the prompt.
        self.terminal.press_until("\x03", "it has ended", |terminal| match host {
            Host::Run => terminal.has_ended(),
            Host::Tmux => !tell_tmux(environment, &["list-panes", "-s", "-t", "main", "-F", "#{pane_id}"])
                .contains(PANE),
            Host::Panes => pane(environment).is_some_and(|pane| pane["state"] == "finished"),
        });
    }

    /// Whether its place shows that something there is unread.
    #[track_caller]
    pub(crate) fn rings(&self) -> bool {
        match self.host {
            // The mark in the title; the terminal keeps too little of what was drawn to look for that.
            Host::Run => self.environment.listed().iter().any(|row| row["is_read"] == false),
            Host::Tmux => {
                tell_tmux(self.environment, &["show-options", "-pqv", "-t", PANE, "@ringer_ring"]) == "1"
            }
            Host::Panes => pane(self.environment).is_some_and(|pane| pane["unread"] != 0),
        }
    }

    /// The terminal in which the person is.
    pub(crate) fn terminal(&mut self) -> &mut Terminal {
        &mut self.terminal
    }
}

/// Waits until a notification is listed. Gives its row.
#[track_caller]
fn until_listed(environment: &ClientEnvironment, id: &Value) -> Value {
    let mut row = None;
    until_within(DEADLINE, "it is listed", || {
        let rows: Vec<Value> = serde_json::from_str(&environment.ringer(&["list", "--json"])).expect("JSON");
        row = rows.into_iter().find(|row| row["id"] == *id);
        row.is_some()
    });
    row.unwrap_or_default()
}

/// The client's pane of Ringer, as it is listed.
#[track_caller]
fn pane(environment: &ClientEnvironment) -> Option<Value> {
    let listed = environment.ringer(&["panes", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&listed).expect("JSON");
    rows.into_iter().find(|row| row["name"] == PANE_NAME)
}

#[track_caller]
fn tell_tmux(environment: &ClientEnvironment, arguments: &[&str]) -> String {
    let arguments = [&["-u", "-L", "ringer", "-f", "/dev/null"], arguments].concat();
    let output = environment.command("tmux", &arguments).output().expect("tmux runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
