//! File watches.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringer_config::{Trusted, load_repository};
use ringer_core::Draft;
use ringer_hub::trust_file;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{HangingDirectory, until};

use crate::hub::TestHub;
use crate::repositories::{end_promptly, from, set_hook, worktree};

/// A directory with a file that is watched, and a hub that runs scripts when it changes.
struct Watched {
    directory: TempDir,
    hub: TestHub,
}

/// A watch of the file `flake.nix` in this directory; what the script prints is for that agent.
fn watch(directory: &Path, agent: &str, script: &str) -> String {
    let (file, command) = (json!([directory.join("flake.nix")]), json!(["sh", "-c", script]));
    format!("[[watch]]\npaths = {file}\ncommand = {command}\nagent = \"{agent}\"\ntimeout_ms = 60000\n")
}

impl Watched {
    /// Scripts find the directory as `$D`, and may wait there for the file `go`.
    fn by(scripts: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let watches = scripts.iter().map(|(agent, script)| {
            let script = format!("D='{}'; {script}", directory.path().display());
            watch(directory.path(), agent, &script)
        });
        let hub = TestHub::start(&watches.collect::<String>());
        until_watched(directory.path());
        Self { directory, hub }
    }

    fn write(&self, name: &str) {
        fs::write(self.path(name), "x").expect("a file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits for a number of messages for agents, and gives them, sorted by whom they are for.
    #[track_caller]
    fn messages(&self, count: usize) -> Vec<Draft> {
        messages(&self.hub, count)
    }
}

#[track_caller]
fn messages(hub: &TestHub, count: usize) -> Vec<Draft> {
    let mut found = Vec::new();
    until("messages for the agents", || {
        let all = hub.journal().messages_after(0, 100).expect("messages");
        found = all
            .into_iter()
            .map(|message| message.draft)
            .filter(|draft| draft.recipient.agent().is_some())
            .collect();
        found.len() >= count
    });
    found.sort_by_key(|draft: &Draft| draft.recipient.to_string());
    found
}

/// Waits until a directory is watched. The hub may answer before that. It runs in this process, so /proc/self/fdinfo lists its
/// watches.
fn until_watched(directory: &Path) {
    let inode = format!(" ino:{:x} ", fs::metadata(directory).expect("a directory").ino());
    let has_watch =
        |text: String| text.lines().any(|line| line.starts_with("inotify ") && line.contains(&inode));
    until("it is watched", || {
        // Other systems have no such list.
        let Ok(descriptors) = fs::read_dir("/proc/self/fdinfo") else { return true };
        descriptors.flatten().any(|one| fs::read_to_string(one.path()).is_ok_and(has_watch))
    });
}

/// Waits until a message of another repository has come, whose settings made the hub apply others.
fn other_repository_speaks(hub: &TestHub) {
    let root = worktree(hub, "other");
    set_hook(&root, "theirs", "true");
    let id = hub.append(&from(&root, "hello"));
    let trail = hub.wait_for_step(&id, "channels: ");
    assert!(trail.iter().any(|step| step.starts_with("hook theirs did not run: not trusted")), "{trail:?}");
}

#[test]
fn a_change_runs_the_command_and_the_agent_is_told() {
    let watched = Watched::by(&[("worker-1", "echo loaded; basename \"$RINGER_WATCH_PATH\"")]);
    watched.write("beside.nix");
    watched.write("flake.nix");
    let draft = &watched.messages(1)[0];
    assert_eq!(draft.recipient.to_string(), "agent:worker-1");
    assert!(
        draft.body.starts_with("flake.nix changed; ") && draft.body.ends_with("loaded\nflake.nix"),
        "{draft:?}"
    );
    // As editors do it.
    watched.write(".flake.nix.swp");
    fs::rename(watched.path(".flake.nix.swp"), watched.path("flake.nix")).expect("a file");
    watched.messages(2);
}

#[test]
fn every_watch_of_a_file_runs() {
    let watched = Watched::by(&[("one", "echo first"), ("two", "echo second"), ("three", "exit 1")]);
    watched.write("flake.nix");
    let told: Vec<String> = watched.messages(3).iter().map(|draft| draft.recipient.to_string()).collect();
    assert_eq!(told, ["agent:one", "agent:three", "agent:two"]);
}

#[test]
fn a_change_is_told_in_the_footer() {
    let watched = Watched::by(&[("worker-1", "echo loaded")]);
    let toasts = watched.hub.follow("toast");
    watched.write("flake.nix");
    let says = |data: &Value| data["text"].as_str().is_some_and(|text| text.contains("flake.nix changed"));
    toasts.next("a toast", says);
}

#[test]
fn a_command_under_way_outlives_settings_that_change_elsewhere() {
    let script = "echo $$ > \"$D/started\"; while ! [ -e \"$D/go\" ]; do sleep 0.02; done; echo done";
    let watched = Watched::by(&[("worker-1", script)]);
    watched.write("flake.nix");
    until("the command runs", || watched.path("started").exists());
    other_repository_speaks(&watched.hub);
    watched.write("go");
    assert!(watched.messages(1)[0].body.ends_with("done"));
}

#[test]
fn no_change_is_lost_while_settings_change() {
    let watched = Watched::by(&[("worker-1", "echo loaded")]);
    let root = worktree(&watched.hub, "other");
    for turn in 1..=5 {
        watched.write("flake.nix");
        // Within the moment in which more changes are waited for, and with another list of watches.
        set_hook(&root, &format!("theirs-{turn}"), "true");
        let id = watched.hub.append(&from(&root, &format!("hello {turn}")));
        watched.hub.wait_for_step(&id, "channels: ");
        watched.messages(turn);
    }
}

#[test]
fn a_watch_stays_as_it_is_while_those_of_worktrees_take_turns() {
    let script = "echo $$ > \"$D/started\"; while ! [ -e \"$D/go\" ]; do sleep 0.02; done; echo done";
    let watched = Watched::by(&[("worker-1", script)]);
    let hub = &watched.hub;
    let roots = ["one", "two"].map(|name| {
        let root = worktree(hub, name);
        fs::write(root.join(".ringer.toml"), watch(&root, name, "echo theirs")).expect("a file");
        root
    });
    let mut trusted = Trusted::default();
    for root in &roots {
        trusted.trust(&load_repository(root, None).expect("settings").watches[0]);
    }
    trusted.save(&trust_file(hub.home())).expect("it is written");
    watched.write("flake.nix");
    until("the command runs", || watched.path("started").exists());
    for (number, root) in roots.iter().cycle().take(4).enumerate() {
        let id = hub.append(&from(root, &format!("number {number}")));
        hub.wait_for_step(&id, "channels: ");
    }
    // The last one that spoke is watched.
    until_watched(&roots[1]);
    fs::write(roots[1].join("flake.nix"), "x").expect("a file");
    watched.write("go");
    let told = watched.messages(2);
    let told: Vec<String> = told.iter().map(|draft| draft.recipient.to_string()).collect();
    assert_eq!(told, ["agent:two", "agent:worker-1"]);
}

#[test]
fn a_watch_that_is_not_trusted_does_not_run() {
    let watched = Watched::by(&[("worker-1", "echo ours")]);
    let root = worktree(&watched.hub, "theirs");
    let ran = root.join("ran");
    // It names the same file, so it would run after ours, and before ours runs again.
    let theirs = watch(watched.directory.path(), "worker-2", &format!("touch '{}'", ran.display()));
    fs::write(root.join(".ringer.toml"), theirs).expect("a file");
    let id = watched.hub.append(&from(&root, "hello"));
    watched.hub.wait_for_step(&id, "channels: ");
    for turn in 1..=2 {
        watched.write("flake.nix");
        watched.messages(turn);
    }
    assert!(!ran.exists());
}

#[test]
fn trust_that_is_withdrawn_ends_the_command() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let root = worktree(&hub, "one");
    let script = format!("cd '{}'; echo $$ > pid; exec sleep 1000", root.display());
    fs::write(root.join(".ringer.toml"), watch(&root, "worker-1", &script)).expect("a file");
    let mut trusted = Trusted::default();
    trusted.trust(&load_repository(&root, None).expect("settings").watches[0]);
    trusted.save(&trust_file(hub.home())).expect("it is written");
    let id = hub.append(&from(&root, "hello"));
    hub.wait_for_step(&id, "channels: ");
    until_watched(&root);
    fs::write(root.join("flake.nix"), "x").expect("a file");
    let pid = || fs::read_to_string(root.join("pid")).unwrap_or_default().trim().to_owned();
    until("the command runs", || !pid().is_empty());
    Trusted::default().save(&trust_file(hub.home())).expect("it is written");
    hub.call("hub.reload", &Value::Null);
    let stat = format!("/proc/{}/stat", pid());
    let runs = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    until("it is ended", || !runs());
}

/// The watches of before go on, and the hub answers.
#[test]
fn a_watch_in_a_directory_that_hangs_stops_nothing_else() {
    let mut watched = Watched::by(&[("one", "echo ran")]);
    let Some(hanging) = HangingDirectory::new().map(Arc::new) else { return };
    let before = fs::read_to_string(watched.hub.path("config.toml")).expect("the settings");
    watched.hub.set(&(before + &watch(&hanging.path(), "two", "echo never")));
    watched.hub.call("hub.reload", &Value::Null);
    watched.write("flake.nix");
    assert!(watched.messages(1)[0].body.contains("ran"));
    end_promptly(&mut watched.hub, &hanging);
}
