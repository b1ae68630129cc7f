//! Agents in panes of tmux whose hooks are not set up: what they say to their terminal rings.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use test_support::{make_fifo, make_program, until};

use super::environment::HubEnvironment;
use super::tmux::Tmux;
use super::tmux_client::setup;

/// A program that is called like Claude Code. It says each line of a FIFO to its terminal, and ends with it.
fn make_claude(environment: &HubEnvironment) -> (PathBuf, PathBuf) {
    let (program, fifo) = (environment.base.path().join("claude"), environment.base.path().join("says"));
    make_fifo(&fifo);
    make_program(
        &program,
        &format!(
            "printf '\\033]2;✳ Claude Code\\007'\nwhile IFS= read -r line; do printf \"$line\"; done < {}",
            fifo.display()
        ),
    );
    (program, fifo)
}

struct Pane<'a> {
    tmux: &'a Tmux<'a>,
    environment: &'a HubEnvironment,
}

/// Says what is seen there, if the test fails.
impl Drop for Pane<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let processes = "#{pane_pid} #{pane_pipe} #{pane_current_command} #{pane_title} #{@ringer_scan}";
            eprintln!("pane: {}", self.tmux.tell(&["display-message", "-p", "-t", "%0", processes]));
            eprintln!("{}", self.tmux.tell(&["capture-pane", "-p", "-t", "%0"]));
            eprintln!("hub.log:\n{}", self.environment.log());
        }
    }
}

impl Pane<'_> {
    fn option(&self, name: &str) -> String {
        self.tmux.tell(&["show-options", "-pqv", "-t", "%0", name])
    }

    fn is_piped(&self) -> bool {
        self.tmux.tell(&["display-message", "-p", "-t", "%0", "#{pane_pipe}"]) == "1"
    }

    fn surfaces(&self) -> String {
        self.environment.connect().call("surface.list", &Value::Null).to_string()
    }

    /// A shell in which a program is started as a person does it.
    fn start(&self, program: &str) {
        self.tmux.tell(&["respawn-pane", "-k", "-t", "%0", "/bin/sh", "-i"]);
        until("a host", || self.surfaces().contains("main:0"));
        self.tmux.tell(&["send-keys", "-t", "%0", program, "Enter"]);
    }
}

#[test]
fn a_notification_of_an_agent_without_hooks_rings_and_reading_ends_with_the_agent() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let (program, fifo) = make_claude(&environment);
    setup(&environment, &[]);
    let pane = Pane { tmux: &tmux, environment: &environment };
    pane.start(program.to_str().expect("UTF-8"));
    until("it is read", || pane.is_piped() && !pane.option("@ringer_scan").is_empty());

    let mut says = fs::File::options().read(true).write(true).open(&fifo).expect("it reads");
    let mut say = |text: &str| std::io::Write::write_all(&mut says, text.as_bytes()).expect("it reads");
    say("\\033]777;notify;Claude Code;Claude needs you\\007\n");
    until("a ring", || pane.option("@ringer_ring") == "1");
    let bodies = environment.bodies(&[]);
    assert!(bodies.len() == 1 && bodies[0].ends_with("Claude needs you"), "{bodies:?}");
    say("\\033]2;[ ! ] Action Required | x\\007\n");
    let agents = || environment.connect().call("agent.list", &Value::Null)["result"].to_string();
    until("its state", || agents().contains("blocked"));

    // It ends; the shell after it is not read.
    drop(says);
    until("it is not read", || pane.option("@ringer_scan").is_empty());
    until("its end", || !agents().contains("blocked"));
    tmux.tell(&["send-keys", "-t", "%0", "echo", "Enter"]);
    until("no pipe", || !pane.is_piped());
}

#[test]
fn an_agent_with_hooks_and_a_pane_that_is_piped_already_are_not_read() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let (program, fifo) = make_claude(&environment);
    setup(&environment, &[]);
    let pane = Pane { tmux: &tmux, environment: &environment };
    let program = program.to_str().expect("UTF-8");
    // A look that came after one that saw the agent.
    let look = |title: &str| {
        let mut says = fs::File::options().read(true).write(true).open(&fifo).expect("it reads");
        for text in [format!("{title} one"), format!("{title} two")] {
            let line = format!("\\033]2;✳ {text}\\007\n");
            std::io::Write::write_all(&mut says, line.as_bytes()).expect("it reads");
            until("a title", || pane.surfaces().contains(&text));
        }
    };
    tmux.tell(&["pipe-pane", "-t", "%0", "cat > /dev/null"]);
    pane.start(program);
    tmux.tell(&["pipe-pane", "-t", "%0", "cat > /dev/null"]);
    look("piped");
    assert!(pane.is_piped() && pane.option("@ringer_scan").is_empty());

    let mut hooks = environment.ringer(&["setup", "claude", "--yes"]);
    let output = hooks.env("HOME", environment.base.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Only now: without hooks, it would be read.
    tmux.tell(&["pipe-pane", "-t", "%0"]);
    pane.start(program);
    look("hooked");
    assert!(!pane.is_piped() && pane.option("@ringer_scan").is_empty());
}

#[test]
fn an_agent_that_a_shell_runs_is_read_and_removal_ends_that() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let (program, _) = make_claude(&environment);
    setup(&environment, &[]);
    let pane = Pane { tmux: &tmux, environment: &environment };
    // As with `tmux new-window claude`.
    tmux.tell(&["respawn-pane", "-k", "-t", "%0", program.to_str().expect("UTF-8")]);
    until("it is read", || pane.is_piped() && !pane.option("@ringer_scan").is_empty());
    setup(&environment, &["--remove"]);
    assert!(!pane.is_piped() && pane.option("@ringer_scan").is_empty());
}
