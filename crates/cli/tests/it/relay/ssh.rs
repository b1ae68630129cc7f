//! Links over a real ssh.

use std::process::Command;

use test_support::until;

use super::machines::Laptop;
use super::sshd::SshServer;
use crate::hub::tmux::Tmux;
use crate::ringer::check;

/// A laptop and a box with an sshd.
struct Ssh {
    laptop: Laptop,
    server: SshServer,
}

impl Ssh {
    fn new() -> Self {
        let laptop = Laptop::without_link();
        let server = SshServer::new(&laptop.far.base.home());
        Self { laptop, server }
    }

    fn near(&self, arguments: &[&str]) -> Command {
        let mut command = self.laptop.near.ringer(arguments);
        command.env("PATH", self.server.search_path());
        command
    }

    #[track_caller]
    fn add(&self, options: &[&str]) -> String {
        check(&mut self.near(&[&["relay", "add", "ssh", "box", "--yes"], options].concat()), 0).0
    }
}

#[test]
fn two_commands_link_a_box_and_nothing_is_lost_when_the_connection_is_killed() {
    let ssh = Ssh::new();
    let added = ssh.add(&["--may-answer"]);
    assert!(added.contains("box answers: ringer"), "{added}");
    ssh.laptop.until_connected();
    let texts: Vec<String> = (0..200).map(|number| format!("message {number}")).collect();
    for (number, text) in texts.iter().enumerate() {
        ssh.laptop.far.base.notify(text);
        if number % 60 == 30 {
            ssh.laptop.kill_server();
        }
    }
    ssh.laptop.until_listed("message 199");
    let mut bodies = ssh.laptop.near.bodies(&["--limit", "1000"]);
    bodies.reverse();
    assert_eq!(bodies, texts, "each once, and in order");
    // An answer goes the same way.
    ssh.laptop.far.base.run(&["ask", "Which branch?"]);
    ssh.laptop.until_listed("Which branch?");
    let id = ssh.laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    check(&mut ssh.near(&["answer", &id, "main"]), 0);
    let hint = check(&mut ssh.near(&["jump", &id]), 69).1;
    assert!(hint.contains("ssh -t box tmux attach"), "{hint}");
}

#[test]
fn a_wrong_key_is_told_with_the_words_of_ssh() {
    let ssh = Ssh::new();
    ssh.server.authorize("", "other");
    let failed = check(&mut ssh.near(&["relay", "add", "ssh", "box", "--yes"]), 69).1;
    assert!(failed.contains("cannot connect to box: ") && failed.contains("Permission denied"), "{failed}");
    assert!(failed.contains("hint: ssh box"), "{failed}");
    ssh.server.authorize("", "key");
    ssh.server.trust("other");
    let failed = check(&mut ssh.near(&["relay", "add", "ssh", "box", "--yes"]), 69).1;
    assert!(failed.contains("Host key verification failed"), "{failed}");
    // A link that worked says the same, and works again once the key is right.
    ssh.server.trust("host");
    ssh.add(&[]);
    ssh.laptop.until_connected();
    ssh.server.trust("other");
    ssh.laptop.kill_server();
    until("the link has failed", || ssh.laptop.status().contains("Host key verification failed"));
    ssh.laptop.far.base.notify("meanwhile");
    ssh.server.trust("host");
    ssh.laptop.until_listed("meanwhile");
}

#[test]
fn a_forced_command_lets_a_machine_do_nothing_else() {
    let ssh = Ssh::new();
    let forced = format!(
        "restrict,command=\"{} relay serve --stdio --name laptop --no-answers\"",
        env!("CARGO_BIN_EXE_ringer")
    );
    ssh.server.authorize(&forced, "key");
    // What is asked of the shell there is not run, so the program is named.
    ssh.add(&["--may-answer", "--program", "ringer"]);
    ssh.laptop.until_connected();
    ssh.laptop.far.base.run(&["ask", "Which branch?"]);
    ssh.laptop.until_listed("Which branch?");
    let id = ssh.laptop.near.list(&[])[0]["id"].as_str().expect("an id").to_owned();
    let refused = check(&mut ssh.near(&["answer", &id, "main"]), 77).1;
    assert!(refused.contains("takes no answers over this link"), "{refused}");
}

#[test]
fn a_jump_goes_to_a_machine_that_was_called_otherwise_before() {
    let ssh = Ssh::new();
    ssh.add(&[]);
    ssh.laptop.until_connected();
    ssh.laptop.far.base.notify("look here");
    ssh.laptop.until_listed("look here");
    let settings = std::fs::read_to_string(ssh.laptop.near.config()).expect("settings");
    ssh.laptop.near.set(&settings.replace("name = \"box\"", "name = \"build\""));
    until("it has its new name", || ssh.laptop.status().contains("build: connected since"));
    let hint = check(&mut ssh.near(&["jump"]), 69).1;
    assert!(hint.contains("the session is on build") && hint.contains("ssh -t box tmux attach"), "{hint}");
}

#[test]
fn a_jump_in_tmux_opens_a_window_that_connects() {
    let ssh = Ssh::new();
    ssh.add(&[]);
    ssh.laptop.until_connected();
    ssh.laptop.far.base.notify("look here");
    ssh.laptop.until_listed("look here");
    let tmux = Tmux::start(&ssh.laptop.near, "set -g remain-on-exit on\n");
    tmux.tell(&["set-environment", "-g", "PATH", &ssh.server.search_path()]);
    let mut jump = ssh.near(&["jump"]);
    let said = check(jump.env("TMUX", tmux.variable()), 0).0;
    assert!(said.contains("Opened a window of tmux that connects to box."), "{said}");
    let windows = tmux.tell(&["list-windows", "-F", "#{window_name}: #{pane_start_command}"]);
    let opened = windows.lines().find(|line| line.starts_with("box:")).expect("a window");
    assert!(opened.contains("ssh") && opened.contains("tmux attach"), "{opened}");
    assert_eq!(ssh.laptop.near.list(&[])[0]["is_read"], true);
}
