//! tmux as a host: rings, badges, what the person looks at; and that all of it goes again.

use std::io::{Read, Write};
use std::{fs, thread};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::Value;
use test_support::until;

use super::environment::{HubEnvironment, kill};
use super::tmux::Tmux;

/// A terminal that shows the server, and reports whether it has the focus.
struct Client {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
}

impl Client {
    fn attach(environment: &HubEnvironment) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new("tmux");
        command.args(["-u", "-L", "ringer", "attach", "-t", "main"]);
        command.env("TMUX_TMPDIR", environment.base.path());
        command.env("TERM", "xterm-256color");
        command.env_remove("TMUX");
        let child = pair.slave.spawn_command(command).expect("a client");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        // What it draws has to be read, or it stops.
        thread::spawn(move || while matches!(reader.read(&mut [0; 4096]), Ok(1..)) {});
        let writer = pair.master.take_writer().expect("a writer");
        Self { child, writer, _master: pair.master }
    }

    fn set_focus(&mut self, focused: bool) {
        let report: &[u8] = if focused { b"\x1b[I" } else { b"\x1b[O" };
        self.writer.write_all(report).and_then(|()| self.writer.flush()).expect("it is typed");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything that can be set in the server.
fn everything(tmux: &Tmux<'_>) -> Vec<String> {
    let commands: [&[&str]; 8] = [
        &["show-options", "-s"],
        &["show-options", "-g"],
        &["show-options", "-gw"],
        &["show-options", "-w", "-t", "main:0"],
        &["show-options", "-w", "-t", "main:1"],
        &["show-hooks", "-g"],
        &["show-hooks", "-gw"],
        &["list-keys"],
    ];
    commands.iter().map(|command| tmux.tell(command)).collect()
}

/// Two windows, the first one with two panes. No settings but the person's own.
fn start(environment: &HubEnvironment) -> Tmux<'_> {
    let settings = "set -g window-status-format '#I;#W'\nset-hook -g client-attached 'display-message hello'\n\
                    bind-key r display-message mine\n";
    let tmux = Tmux::start(environment, settings);
    tmux.tell(&["split-window", "-t", "main:0", "sleep 1000"]);
    tmux.tell(&["new-window", "-d", "-t", "main", "sleep 1000"]);
    tmux.tell(&["select-pane", "-t", "%0"]);
    tmux.tell(&["set-option", "-w", "-t", "main:0", "pane-border-style", "fg=red"]);
    tmux
}

fn setup(environment: &HubEnvironment, arguments: &[&str]) {
    let mut command = environment.ringer(&[&["setup", "tmux", "--yes"], arguments].concat());
    command.env("TMUX_TMPDIR", environment.base.path()).env("HOME", environment.base.path());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program in a pane tells something.
fn tell_from(environment: &HubEnvironment, tmux: &Tmux<'_>, pane: &str, text: &str) {
    let server = tmux.tell(&["display-message", "-p", "#{socket_path},#{pid},0"]);
    let mut command = environment.ringer(&["notify", "--kind", "complete", text]);
    let status = command.env("TMUX", server).env("TMUX_PANE", pane).status().expect("it runs");
    assert!(status.success());
}

#[test]
fn a_pane_rings_until_the_person_goes_there_and_everything_is_as_before_after_removal() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    let before = everything(&tmux);
    setup(&environment, &[]);
    let configuration = environment.base.path().join(".tmux.conf");
    assert!(fs::read_to_string(&configuration).expect("a file").contains("hub tmux"));
    assert!(
        tmux.tell(&["list-keys", "-T", "prefix", "r"]).ends_with("display-message mine"),
        "it is the person's"
    );
    let mut client = Client::attach(&environment);
    until("a client", || !tmux.tell(&["list-clients"]).is_empty());
    client.set_focus(false);
    let option = |target: &str, name: &str| tmux.tell(&["show-options", "-wqv", "-t", target, name]);
    let ring = |pane: &str| tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"]);
    let list = || environment.list(&["--unread"]).len();

    // The person is not there.
    let has_host = || environment.connect().call("surface.list", &Value::Null).to_string().contains("main:1");
    until("a host", has_host);
    tell_from(&environment, &tmux, "%1", "done here");
    until("a ring", || ring("%1") == "1");
    until("a badge", || {
        tmux.tell(&["display-message", "-p", "-t", "main:0", "#{T:window-status-format}"]).contains("+1")
    });
    assert_eq!(ring("%0"), "");
    let style = tmux.tell(&["display-message", "-p", "-t", "%1", "#{E:pane-border-style}"]);
    assert_eq!(style, "fg=blue,bold");
    assert_eq!(tmux.tell(&["display-message", "-p", "-t", "%0", "#{E:pane-border-style}"]), "fg=red");

    // They come back, to another pane; then they go there.
    client.set_focus(true);
    tmux.tell(&["wait-for", "-S", "ringer-look"]);
    assert_eq!(list(), 1);
    tmux.tell(&["select-pane", "-t", "%1"]);
    until("no ring", || ring("%1").is_empty() && list() == 0);
    until("their border", || option("main:0", "@ringer_border").is_empty());
    assert_eq!(tmux.tell(&["show-options", "-wv", "-t", "main:0", "pane-border-style"]), "fg=red");

    // What comes where they look is read; a window with one pane has a badge.
    tell_from(&environment, &tmux, "%1", "seen");
    tell_from(&environment, &tmux, "%2", "elsewhere");
    until("a ring", || ring("%2") == "1");
    assert_eq!(list(), 1);
    setup(&environment, &["--remove"]);
    drop(client);
    assert_eq!(everything(&tmux), before);
    assert_eq!((ring("%2"), configuration.exists()), (String::new(), false));
}

#[test]
fn a_new_hub_goes_on_where_the_last_one_was_killed() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    setup(&environment, &[]);
    tell_from(&environment, &tmux, "%1", "one");
    let ring = |pane: &str| tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"]);
    until("a ring", || ring("%1") == "1");
    kill(environment.hub());
    // Read while no hub runs; the next one takes the ring away.
    environment.run(&["read", "--all"]);
    environment.run(&["hub", "start"]);
    until("no ring", || ring("%1").is_empty());
    until("their border", || {
        tmux.tell(&["show-options", "-wv", "-t", "main:0", "pane-border-style"]) == "fg=red"
    });
    tell_from(&environment, &tmux, "%0", "two");
    until("a ring", || ring("%0") == "1");
}
