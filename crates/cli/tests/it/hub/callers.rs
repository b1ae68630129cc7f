//! Where a message came from: what the program finds out about its caller.

use std::fs;
use std::io::Read;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::Value;
use test_support::until;

use super::environment::HubEnvironment;
use super::tmux::Tmux;
use crate::ringer::check;

/// A terminal with a shell in it, and what it has printed.
struct Terminal {
    shell: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    tty: String,
}

impl Terminal {
    /// Runs a script in a terminal of its own, as its session's leader.
    fn run(environment: &HubEnvironment, script: &str, variables: &[(&str, &str)]) -> Self {
        let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
        let tty = pty.master.tty_name().expect("a name").to_str().expect("a path").to_owned();
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        command.env_clear();
        command.cwd(environment.base.repository());
        for (name, value) in environment.variables() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let shell = pty.slave.spawn_command(command).expect("a shell");
        Self { shell, master: pty.master, tty }
    }

    /// When its shell was started, as the kernel counts.
    fn started(&self) -> u64 {
        let pid = self.shell.process_id().expect("it runs");
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        rest.split(' ').nth(19).and_then(|field| field.parse().ok()).expect("a number")
    }

    /// Waits until the script has ended.
    fn end(&mut self) {
        let mut said = Vec::new();
        // On Linux a PTY without a process at its other end reads as an error, after all its bytes.
        let _ = self.master.try_clone_reader().expect("a reader").read_to_end(&mut said);
        let exit = self.shell.wait().expect("it ends");
        assert!(exit.success(), "{}", String::from_utf8_lossy(&said));
    }
}

fn newest(environment: &HubEnvironment) -> Value {
    environment.list(&["--limit", "1"]).into_iter().next().expect("a notification")
}

#[test]
fn ids_in_the_environment_say_where() {
    let environment = HubEnvironment::new();
    let mut notify = environment.ringer(&["notify", "hello"]);
    check(notify.env("RINGER_SURFACE", "ws:one"), 0);
    assert_eq!(newest(&environment)["surface"], "ws:one");
    let mut notify = environment.ringer(&["notify", "nowhere"]);
    check(notify.env("RINGER_SURFACE", "").env("TMUX", ""), 0);
    assert_eq!(newest(&environment)["surface"], Value::Null);
}

#[test]
fn a_surface_that_no_host_has_stays_in_the_workspace_that_was_given() {
    let environment = HubEnvironment::new();
    let mut notify = environment.ringer(&["notify", "hello"]);
    check(notify.env("RINGER_SURFACE", "ws:one").env("RINGER_WORKSPACE", "w1"), 0);
    let row = newest(&environment);
    assert_eq!((&row["surface"], &row["workspace"]), (&"ws:one".into(), &"w1".into()), "{row}");
}

#[test]
fn inside_tmux_it_is_the_pane() {
    let environment = HubEnvironment::new();
    let mut notify = environment.ringer(&["notify", "hello"]);
    notify.env("TMUX", "/tmp/tmux-0/default,4242,0").env("TMUX_PANE", "%3").env("TERM", "tmux-256color");
    // Inherited from the terminal around tmux.
    check(notify.env("RINGER_SURFACE", "ws:stale"), 0);
    assert_eq!(newest(&environment)["surface"], "tmux:/tmp/tmux-0/default:4242:%3");
}

#[test]
fn in_a_pane_of_a_real_tmux_it_is_the_pane_and_in_a_terminal_started_from_there_it_is_that_terminal() {
    let environment = HubEnvironment::new();
    // A TERM that tmux is told to set, but that does not name tmux: then its server is the only evidence.
    let tmux = Tmux::start(&environment, "set -g default-terminal xterm-256color\n");
    let run = |script: &str| {
        let before = environment.list(&[]).len();
        tmux.tell(&["new-window", "-d", script]);
        until("the message is there", || environment.list(&[]).len() > before);
        newest(&environment)
    };
    let row = run("\"$RINGER\" notify 'in a pane'");
    let surface = row["surface"].as_str().expect("a surface").to_owned();
    assert!(surface.starts_with("tmux:") && surface.contains(":%"), "{row}");
    // As kitty starts its shell: on a PTY of its own, with the variables of the pane.
    let row = run("TERM=xterm-kitty script -qc '\"$RINGER\" notify \"in a kitty\"' /dev/null");
    let surface = row["surface"].as_str().expect("a surface").to_owned();
    assert!(surface.starts_with("tty:/dev/pts/"), "{row}");
}

#[test]
fn in_a_plain_terminal_it_is_the_device_and_whose_it_is() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut terminal = Terminal::run(&environment, "read line; \"$RINGER\" notify hello", &[]);
    let surface = format!("tty:{}@{}", terminal.tty, terminal.started());
    terminal.master.take_writer().expect("a keyboard").write_all(b"\n").expect("it is typed");
    terminal.end();
    let row = newest(&environment);
    assert_eq!(row["surface"], surface.as_str());
    assert_eq!(row["workspace"], format!("repo:{}", row["scope"].as_str().expect("a scope")));
    // What is known of it is enough for a mark.
    assert_eq!(environment.run(&["read", "--surface", &surface]), "1 read\n");
    let mut socket = environment.connect();
    let surfaces = socket.call("surface.list", &Value::Null);
    assert_eq!(surfaces["result"][0]["tty"], terminal.tty.as_str(), "{surfaces}");
}

#[test]
fn without_a_terminal_of_its_own_it_is_that_of_an_ancestor() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    // As an agent's hooks run: in a session of their own, with nothing but pipes.
    let script =
        "read line; setsid --wait sh -c '\"$RINGER\" notify hello; true' </dev/null >/dev/null 2>&1; true";
    let mut terminal = Terminal::run(&environment, script, &[]);
    let surface = format!("tty:{}@{}", terminal.tty, terminal.started());
    terminal.master.take_writer().expect("a keyboard").write_all(b"\n").expect("it is typed");
    terminal.end();
    assert_eq!(newest(&environment)["surface"], surface.as_str());
}

#[test]
fn one_surface_has_one_unread_notification() {
    let environment = HubEnvironment::new();
    for body in ["one", "two"] {
        check(
            environment.ringer(&["notify", body]).env("RINGER_SURFACE", "s").env("RINGER_WORKSPACE", "w"),
            0,
        );
        environment.run(&["list"]);
    }
    assert_eq!(environment.bodies(&["--unread"]), ["two"]);
    assert_eq!(environment.bodies(&[]), ["two", "one"]);
    let status = environment.json(&["hub", "status", "--json"]);
    assert_eq!(status["unread"], 1);
}
