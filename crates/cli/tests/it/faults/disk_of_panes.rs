//! A disk that cannot be written while panes are open: they can be reached, and what their programs say is not lost.

use std::fs;
use std::process::Command;

use serde_json::Value;
use test_support::until;

use super::disk::READ_ONLY;
use super::mounts::Mounts;
use crate::hub::environment::{HubEnvironment, kill};
use crate::panes::commands::BECOME_AGENT;
use crate::panes::session::Session;
use crate::pty::Pane;
use crate::ringer::{check, json};

const MOUNT: &str = "mkdir \"$RINGER_HOME\"; mount -t tmpfs -o size=4m,mode=700 none \"$RINGER_HOME\"";

/// A home on a disk of its own, with a hub and a pane whose program makes a notification of each line that it reads.
struct Speaker<'a> {
    hub: &'a HubEnvironment,
    mounts: Mounts<'a>,
}

impl<'a> Speaker<'a> {
    fn open(hub: &'a HubEnvironment) -> Option<Self> {
        let speaker = Self { hub, mounts: Mounts::new(&hub.base, MOUNT)? };
        let script = r#"while read -r line; do printf '\033]9;%s\007' "$line"; done"#;
        speaker.run(&["open", "-d", "--name", "speaker", "--", "sh", "-c", script]);
        speaker.say("before");
        until("it is listed", || speaker.bodies() == ["before"]);
        Some(speaker)
    }

    fn variables(&self) -> Vec<(String, String)> {
        let own = [("TERM", "xterm-256color"), ("SHELL", "/bin/sh"), ("LANG", "C.UTF-8")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.hub.variables().into_iter().chain(own).collect()
    }

    fn ringer(&self, arguments: &[&str]) -> Command {
        let mut command = self.mounts.ringer(arguments);
        command.env_remove("RINGER_HUB").envs(self.variables());
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        check(&mut self.ringer(arguments), 0).0
    }

    #[track_caller]
    fn say(&self, text: &str) {
        self.run(&["pane", "send", "speaker", text]);
    }

    #[track_caller]
    fn list(&self) -> Vec<Value> {
        json(&self.run(&["list", "--json"])).as_array().expect("a list").clone()
    }

    /// The newest first.
    #[track_caller]
    fn bodies(&self) -> Vec<String> {
        let rows = self.list();
        let bodies = rows.iter().map(|row| row["body"].as_str().expect("a text").to_owned());
        // What this test types without a terminal is announced.
        bodies.filter(|body| !body.starts_with("A script of yours")).collect()
    }

    #[track_caller]
    fn problems(&self) -> Value {
        json(&self.run(&["status", "--json"]))["problems"].clone()
    }

    /// `ringer attach` in a terminal, once it shows panes.
    fn attach(&self) -> Pane {
        let command = self.mounts.ringer(&["attach"]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().expect("text")).collect();
        let window = Pane::start(&words, &self.variables(), Some(&self.hub.base.repository()));
        window.wait_for("speaker");
        window
    }
}

#[test]
fn what_programs_in_panes_say_on_a_full_disk_comes_when_there_is_room() {
    // It ends what runs in its home.
    let session = Session::new();
    let hub = &session.hub;
    let Some(speaker) = Speaker::open(hub) else { return };
    let window = speaker.attach();
    speaker.mounts.sh("! cat /dev/zero > \"$RINGER_HOME/filler\" 2>/dev/null");
    speaker.say("on a full disk");
    speaker.say("and another");
    until("the person is told", || speaker.problems()[0]["key"] == "disk");
    let home = hub.base.home();
    let text = speaker.problems()[0]["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with(&format!("no space left in {}: ", home.display())), "{text}");
    assert!(speaker.run(&[]).contains("problem: no space left in "));
    // In the line of the footer, too.
    window.wait_for("no space left in ");
    assert_eq!(speaker.bodies(), ["before"]);
    speaker.mounts.sh("rm \"$RINGER_HOME/filler\"");
    until("they are listed", || speaker.bodies() == ["and another", "on a full disk", "before"]);
    until("it is no problem any more", || speaker.problems()[0].is_null());
}

#[test]
fn what_a_hub_could_not_write_before_it_was_killed_comes_once_from_its_panes() {
    // It ends what runs in its home.
    let session = Session::new();
    let Some(speaker) = Speaker::open(&session.hub) else { return };
    speaker.mounts.sh("! cat /dev/zero > \"$RINGER_HOME/filler\" 2>/dev/null");
    speaker.say("on a full disk");
    speaker.say("and another");
    until("the person is told", || speaker.problems()[0]["key"] == "disk");
    let pid = json(&speaker.run(&["hub", "status", "--json"]))["pid"].as_u64().expect("a number");
    kill(u32::try_from(pid).expect("a pid"));
    speaker.mounts.sh("rm \"$RINGER_HOME/filler\"");
    let said = ["and another", "on a full disk", "before"];
    until("they are listed", || speaker.bodies() == said);
    speaker.say("with room");
    until("it is listed", || speaker.bodies().first().is_some_and(|newest| newest == "with room"));
    assert_eq!(speaker.bodies()[1..], said);
}

#[test]
fn panes_can_be_reached_in_a_home_that_became_read_only() {
    // It ends what runs in its home.
    let session = Session::new();
    let hub = &session.hub;
    let Some(speaker) = Speaker::open(hub) else { return };
    let send = r#"read line; "$RINGER" pane send speaker "$line"; echo $? > exit; read line"#;
    speaker.run(&["open", "-d", "--name", "agent", "--", "sh", "-c", &format!("{BECOME_AGENT}; {send}")]);
    until("the agent is known", || !json(&speaker.run(&["status", "--json"]))["agents"][0].is_null());
    speaker.mounts.sh(READ_ONLY);
    assert!(speaker.run(&["panes"]).contains("speaker"));
    assert!(speaker.run(&["panes", "--workspaces"]).contains("before"));
    speaker.run(&["pane", "send", "agent", "of an agent"]);
    let exit = || fs::read_to_string(hub.base.repository().join("exit")).unwrap_or_default();
    until("the agent is refused", || exit() == "77\n");
    speaker.say("read-only");
    until("the person is told", || speaker.problems()[0]["key"] == "disk");
    assert!(speaker.run(&[]).contains("Read-only file system"));
    let mut window = speaker.attach();
    // The person is there, so it is read; that is written when it can be.
    assert!(speaker.run(&["jump"]).contains("before"));
    assert_eq!(speaker.bodies(), ["before"]);
    speaker.run(&["detach"]);
    assert!(window.wait().success(), "{}", window.text());
    // What has to be written says so.
    let (_, said) = check(&mut speaker.ringer(&["notify", "lost?"]), 77);
    assert!(said.contains("Read-only file system") && said.contains("-o remount,rw"), "{said}");
    speaker.mounts.sh("umount \"$RINGER_HOME\"");
    until("what was said is listed", || speaker.bodies() == ["read-only", "before"]);
    until("what was gone to is read", || speaker.list()[1]["is_read"] == true);
    until("it is no problem any more", || speaker.problems()[0].is_null());
}
