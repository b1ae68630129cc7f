//! Agents in sandboxes: real ones, made of namespaces by bubblewrap and of Landlock, with the settings that the docs name.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use test_support::until;

use super::environment::HubEnvironment;
use crate::background::Background;
use crate::ringer::{check, json};

/// Restricts itself with Landlock to reading everything and writing the directories named before `--`, and runs a program.
const LANDLOCK: &str = include_str!("landlock.py");

/// A way to forbid writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sandbox {
    /// As Claude Code does it: everything is there and read-only, in a network and a process namespace of its own.
    ReadOnly,
    /// A container that has the two directories of the home and nothing else of it.
    Container,
    /// As Codex does it on Linux: the same mounts, and the kernel refuses to open files for writing.
    Landlock,
}

const STRICT: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";
const ALL: [Sandbox; 3] = [Sandbox::ReadOnly, Sandbox::Container, Sandbox::Landlock];

impl Sandbox {
    /// A program in it, which may write the directories in `writable`.
    fn around(self, environment: &HubEnvironment, writable: &[&Path], program: &[&str]) -> Command {
        let home = environment.base.home();
        let outbox = home.join("outbox");
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let mut command =
            environment.program(if self == Self::Landlock { "/usr/bin/python3" } else { "bwrap" });
        match self {
            Self::ReadOnly => {
                command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"]);
                command.args(["--unshare-net", "--new-session", "--die-with-parent"]);
                for path in writable.iter().filter(|path| path.exists()) {
                    command.args(["--bind", &text(path), &text(path)]);
                }
            }
            Self::Container => {
                command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"]);
                command.args(["--tmpfs", &text(&home), "--ro-bind", &text(&outbox), &text(&outbox)]);
                for path in writable {
                    command.args(["--bind", &text(path), &text(path)]);
                }
                command.arg("--die-with-parent");
            }
            Self::Landlock => {
                command.args(["-c", LANDLOCK]).args(writable).arg("--");
            }
        }
        command.args(program);
        command
    }

    /// The binary in it, with the drop box that the docs name.
    fn ringer(self, environment: &HubEnvironment, arguments: &[&str]) -> Command {
        let drop = environment.base.home().join("drop");
        self.around(environment, &[&drop], &[&[env!("CARGO_BIN_EXE_ringer")], arguments].concat())
    }
}

/// A home whose hub has made the two directories.
fn with_hub() -> HubEnvironment {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    environment.settled_hub();
    environment
}

fn row_of(environment: &HubEnvironment, body: &str) -> Option<Value> {
    environment.list(&[]).into_iter().find(|row| row["body"] == body)
}

#[test]
fn a_notification_from_a_sandbox_is_shown_as_from_an_unverified_process() {
    let environment = with_hub();
    for sandbox in ALL {
        let body = format!("from {sandbox:?}");
        let (_, said) = check(&mut sandbox.ringer(&environment, &["notify", "--from", "person", &body]), 0);
        assert!(said.contains("queued"), "{said}");
        until("the hub shows it", || row_of(&environment, &body).is_some());
        let row = row_of(&environment, &body).expect("it is there");
        assert_eq!(row["from"], "unverified", "{row}");
        let title = row["title"].as_str().expect("a title");
        assert!(title.starts_with("an unverified process in ") && title.ends_with("/repository"), "{title}");
    }
    assert_eq!(fs::read_dir(environment.base.home().join("drop")).expect("a directory").count(), 0);
}

#[test]
fn a_question_from_a_sandbox_is_answered_there() {
    let environment = with_hub();
    for sandbox in ALL {
        let question = format!("Deploy from {sandbox:?}?");
        let asking =
            sandbox.ringer(&environment, &["ask", "--wait", "--option", "yes", "--option", "no", &question]);
        let asking = Background::start(asking);
        until("the question is listed", || row_of(&environment, &question).is_some());
        let id = row_of(&environment, &question).expect("it is there")["question_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        environment.run(&["answer", &id, "yes"]);
        assert_eq!(asking.line().as_deref(), Some("yes"), "{sandbox:?}");
    }
}

#[test]
fn a_listener_in_a_sandbox_gets_each_message_once() {
    let environment = with_hub();
    for (number, sandbox) in ALL.into_iter().enumerate() {
        let name = format!("sandbox-{number}");
        let drain = || {
            let (lines, _) =
                check(&mut sandbox.ringer(&environment, &["listen", "--timeout", "0", "--as", &name]), 0);
            lines
                .lines()
                .map(|line| json(line)["msg"].as_str().expect("a text").to_owned())
                .collect::<Vec<_>>()
        };
        drain();
        environment.notify(&["one"]);
        environment.notify(&["two"]);
        let mut heard = Vec::new();
        until("both are heard", || {
            heard.extend(drain());
            heard.len() >= 2
        });
        assert_eq!(heard, ["one", "two"], "{sandbox:?}");
        assert_eq!(drain(), Vec::<String>::new());
        let listening = Background::start(sandbox.ringer(&environment, &["listen", "--as", &name]));
        environment.notify(&["three"]);
        assert_eq!(json(&listening.line().expect("a line"))["msg"], "three", "{sandbox:?}");
    }
}

#[test]
fn without_a_hub_a_listener_says_so_and_a_notification_waits() {
    let environment = with_hub();
    environment.run(&["hub", "stop"]);
    let (_, said) = check(&mut Sandbox::ReadOnly.ringer(&environment, &["notify", "later"]), 0);
    assert!(said.contains("queued"), "{said}");
    let (_, said) = check(&mut Sandbox::ReadOnly.ringer(&environment, &["listen", "--timeout", "0"]), 75);
    assert!(said.contains("ringer hub start"), "{said}");
    until("the next hub takes it", || row_of(&environment, "later").is_some());
}

#[test]
fn a_sandbox_without_the_drop_box_is_told_what_to_allow() {
    let environment = with_hub();
    let ringer = env!("CARGO_BIN_EXE_ringer");
    for sandbox in [Sandbox::ReadOnly, Sandbox::Landlock] {
        for arguments in [&["notify", "hello"][..], &["ask", "Why?"], &["listen", "--timeout", "0"]] {
            let command = [&[ringer], arguments].concat();
            let (_, said) = check(&mut sandbox.around(&environment, &[], &command), 77);
            assert!(said.contains("/drop") && said.contains("/outbox"), "{said}");
            assert!(
                !said.contains(&format!("[\"{}\"]", environment.base.home().display())),
                "never the home: {said}"
            );
        }
    }
}

/// What the review did with the home, and what a sandbox could do with the two directories.
#[test]
fn nothing_else_of_the_home_can_be_changed_from_a_sandbox() {
    let (environment, waiting) = super::agents_that_try::asked();
    environment.settled_hub();
    // Nothing without a terminal decides, outside a sandbox or in it.
    environment.set_exactly(STRICT);
    let id = environment.list(&[])[0]["short_id"].as_str().expect("a short id").to_owned();
    let home = environment.base.home();
    let before = |name: &str| fs::read(home.join(name)).ok();
    let (trust, channels) = (before("trusted.json"), before("channels.json"));
    let script = r#"
        cd "$RINGER_HOME"
        echo '{}' > trusted.json; echo '{}' > channels.json; echo x > outbox/answer-q-1-000000.json; echo x > config.toml
        ln -sf "$RINGER_HOME/ringer.db" drop/link.json; ln "$RINGER_HOME/hub.json" drop/hard.json
        printf '{"version":1,"request":{"answer":{"id":"%s","answer":"allow"}}}' "$ID" > drop/forged.json
        mv drop drop2; rm -rf outbox
        for what in "answer $ID allow" "answer $ID deny" "trust" "mute --all" "dnd 1h" "clear --all" "undo" "hub stop"; do
            "$RINGER" $what < /dev/null; echo "exit $? of $what"
        done
        "#;
    for sandbox in [Sandbox::ReadOnly, Sandbox::Landlock] {
        let drop = home.join("drop");
        let mut command = sandbox.around(&environment, &[&drop], &["sh", "-c", script]);
        command.env("ID", &id);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.matches("exit ").count(), 8, "{said}");
        assert!(
            !said.contains("exit 0 of "),
            "{sandbox:?}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!((before("trusted.json"), before("channels.json")), (trust.clone(), channels.clone()));
        assert!(home.join("drop").is_dir() && home.join("outbox").is_dir());
        until("the hub has removed what is no claim", || {
            fs::read_dir(&drop).is_ok_and(|mut entries| entries.next().is_none())
        });
    }
    environment.set(STRICT);
    super::agents_that_try::check_denied(&environment, &["answer", &id, "deny"], waiting);
}
