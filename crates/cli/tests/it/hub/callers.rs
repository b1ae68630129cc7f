//! Where a message came from: what the program finds out about whoever called it.

use std::io::Read;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::Value;

use super::world::HubWorld;
use crate::ringer::check;

/// A terminal with a shell in it, and what it has printed.
struct Terminal {
    shell: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    tty: String,
}

impl Terminal {
    /// Runs a script in a terminal of its own, as its session's leader.
    fn run(world: &HubWorld, script: &str, variables: &[(&str, &str)]) -> Self {
        let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
        let tty = pty.master.tty_name().expect("a name").to_str().expect("a path").to_owned();
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        command.env_clear();
        command.cwd(world.environment.repository());
        for (name, value) in world.variables() {
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
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
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

fn newest(world: &HubWorld) -> Value {
    world.list(&["--limit", "1"]).into_iter().next().expect("a notification")
}

#[test]
fn ids_in_the_environment_say_where() {
    let world = HubWorld::new();
    let mut notify = world.ringer(&["notify", "hello"]);
    check(notify.env("RINGER_SURFACE", "ws:one"), 0);
    assert_eq!(newest(&world)["surface"], "ws:one");
    let mut notify = world.ringer(&["notify", "nowhere"]);
    check(notify.env("RINGER_SURFACE", "").env("TMUX", ""), 0);
    assert_eq!(newest(&world)["surface"], Value::Null);
}

#[test]
fn a_surface_that_nobody_owns_stays_in_the_workspace_that_was_given() {
    let world = HubWorld::new();
    let mut notify = world.ringer(&["notify", "hello"]);
    check(notify.env("RINGER_SURFACE", "ws:one").env("RINGER_WORKSPACE", "w1"), 0);
    let row = newest(&world);
    assert_eq!((&row["surface"], &row["workspace"]), (&"ws:one".into(), &"w1".into()), "{row}");
}

#[test]
fn inside_tmux_it_is_the_pane() {
    let world = HubWorld::new();
    let mut notify = world.ringer(&["notify", "hello"]);
    notify.env("TMUX", "/tmp/tmux-0/default,4242,0").env("TMUX_PANE", "%3");
    // Inherited from the terminal around tmux.
    check(notify.env("RINGER_SURFACE", "ws:stale"), 0);
    assert_eq!(newest(&world)["surface"], "tmux:/tmp/tmux-0/default:4242:%3");
}

#[test]
fn in_a_plain_terminal_it_is_the_device_and_whose_it_is() {
    let world = HubWorld::new();
    world.run(&["hub", "start"]);
    let mut terminal = Terminal::run(&world, "read line; \"$RINGER\" notify hello", &[]);
    let surface = format!("tty:{}@{}", terminal.tty, terminal.started());
    terminal.master.take_writer().expect("a keyboard").write_all(b"\n").expect("it is typed");
    terminal.end();
    let row = newest(&world);
    assert_eq!(row["surface"], surface.as_str());
    assert_eq!(row["workspace"], format!("repo:{}", row["scope"].as_str().expect("a scope")));
    // What is known of it is enough for a mark.
    assert_eq!(world.run(&["read", "--surface", &surface]), "1 read\n");
    let mut socket = world.connect();
    let surfaces = socket.call("surface.list", &Value::Null);
    assert_eq!(surfaces["result"][0]["tty"], terminal.tty.as_str(), "{surfaces}");
}

#[test]
fn without_a_terminal_of_its_own_it_is_that_of_an_ancestor() {
    let world = HubWorld::new();
    world.run(&["hub", "start"]);
    // As an agent's hooks run: in a session of their own, with nothing but pipes.
    let script =
        "read line; setsid --wait sh -c '\"$RINGER\" notify hello; true' </dev/null >/dev/null 2>&1; true";
    let mut terminal = Terminal::run(&world, script, &[]);
    let surface = format!("tty:{}@{}", terminal.tty, terminal.started());
    terminal.master.take_writer().expect("a keyboard").write_all(b"\n").expect("it is typed");
    terminal.end();
    assert_eq!(newest(&world)["surface"], surface.as_str());
}

#[test]
fn one_surface_has_one_unread_notification() {
    let world = HubWorld::new();
    for body in ["one", "two"] {
        check(world.ringer(&["notify", body]).env("RINGER_SURFACE", "s").env("RINGER_WORKSPACE", "w"), 0);
        world.run(&["list"]);
    }
    assert_eq!(world.bodies(&["--unread"]), ["two"]);
    assert_eq!(world.bodies(&[]), ["two", "one"]);
    let status = world.json(&["hub", "status", "--json"]);
    assert_eq!(status["unread"], 1);
}
