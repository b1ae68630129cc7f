//! Hooks whose event cannot be written at once: it is spooled, and nothing is lost.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::faults::Mounts;
use crate::home::{TestEnvironment, lines};
use crate::hook::{feed, play, recorded, settle};
use crate::ringer::{check, json};

/// Holds the write lock, as a stopped writer does.
pub(crate) fn hold_lock(environment: &TestEnvironment) -> File {
    let path = environment.home().join("write.lock");
    let held = OpenOptions::new().append(true).create(true).open(path).expect("a lock");
    held.lock().expect("it is free");
    held
}

/// The number of events in a spool directory.
pub(crate) fn waiting(directory: PathBuf) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(".event")).count()
}

/// The kinds of everything in the journal. A listener here would be the agent's own, and hear nothing of itself.
fn kinds(environment: &TestEnvironment) -> Vec<String> {
    types(&environment.run(&["log", "--everywhere", "--json"]))
}

fn types(output: &str) -> Vec<String> {
    lines(output).iter().map(|message| message["type"].as_str().expect("a type").to_owned()).collect()
}

fn state(environment: &TestEnvironment) -> String {
    environment.status()["agents"][0]["state"].as_str().expect("a state").to_owned()
}

#[test]
fn a_lock_that_is_held_delays_no_agent_and_loses_nothing() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    let held = hold_lock(&environment);
    assert_eq!(play(&environment, "claude_PostToolUse_Bash"), "", "nothing changes, so nothing is written");
    for (number, name) in ["claude_Stop", "claude_UserPromptSubmit"].iter().enumerate() {
        // Ends although the lock is held until after the loop.
        assert_eq!(play(&environment, name), "", "{name}");
        assert_eq!(waiting(environment.home().join("spool")), number + 1, "{name}");
    }
    assert!(environment.run(&["status"]).contains("2 waiting to be stored"));
    drop(held);
    assert_eq!(state(&environment), "working");
    assert_eq!(waiting(environment.home().join("spool")), 0);
    assert_eq!(kinds(&environment), ["complete"]);
    assert!(!environment.run(&["status"]).contains("hook events"));
}

/// Where no hub may be started, the hook process is the hub for a moment once it has answered.
#[test]
fn a_spooled_event_gets_nothing_and_what_waits_comes_with_a_later_one() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    environment.run(&["notify", "--from", "w1", "--to", crate::hook::AGENT, "hello"]);
    let held = hold_lock(&environment);
    assert_eq!(play(&environment, "claude_PostToolUse_Bash"), "", "the lock is held");
    assert_eq!(waiting(environment.home().join("spool")), 1);
    drop(held);
    assert_eq!(
        play(&environment, "claude_PostToolUse_Bash"),
        "",
        "an earlier event of the session is spooled"
    );
    assert_eq!(waiting(environment.home().join("spool")), 0);
    assert!(play(&environment, "claude_PostToolUse_Bash").contains("hello"));
}

#[test]
fn a_listener_hears_of_it_without_a_hub() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    let mut command = environment.ringer(&["listen"]);
    command.env("RINGER_AGENT", "lead");
    let listener = environment.start(command);
    let held = hold_lock(&environment);
    play(&environment, "claude_Stop");
    drop(held);
    let line = listener.line().expect("it prints what the hook could not write");
    assert_eq!(json(&line)["type"], "complete");
}

#[test]
fn a_damaged_journal_is_left_to_those_who_have_time() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    for ending in ["-wal", "-shm"] {
        let path = environment.home().join(format!("ringer.db{ending}"));
        fs::remove_file(path).expect("it was there");
    }
    fs::write(environment.database(), b"this is no database, and was one a moment ago").expect("overwritten");
    let before = fs::read(environment.database()).expect("it is there");
    assert_eq!(play(&environment, "claude_Stop"), "");
    assert_eq!(fs::read(environment.database()).expect("it is there"), before, "no hook repairs it");
    assert_eq!(waiting(environment.home().join("spool")), 1);
    environment.run(&["doctor", "--repair"]);
    assert_eq!(kinds(&environment), ["complete"]);
}

#[test]
fn a_full_disk_and_a_read_only_home_lose_nothing_where_the_runtime_directory_can_be_written() {
    for mount in [
        "mkdir -p \"$RINGER_HOME\"; mount -t tmpfs -o size=500k,mode=700 none \"$RINGER_HOME\"",
        "mkdir -p \"$RINGER_HOME\"; mount --bind \"$RINGER_HOME\" \"$RINGER_HOME\"",
    ] {
        let environment = TestEnvironment::new();
        let runtime = environment.path().join("run");
        fs::create_dir(&runtime).expect("a directory");
        let Some(mounts) = Mounts::new(&environment, mount) else { return };
        let hook = |event: &str| {
            let mut command = mounts.ringer(&["hook", "claude", event]);
            command.env("XDG_RUNTIME_DIR", &runtime);
            let name = format!("claude_{event}");
            settle(&feed(command, recorded(&environment, &name).to_string().as_bytes()))
        };
        hook("UserPromptSubmit");
        let is_full = mount.contains("tmpfs");
        mounts.sh(if is_full {
            "dd if=/dev/zero of=\"$RINGER_HOME/filler\" bs=4k 2>/dev/null || true"
        } else {
            "mount -o remount,bind,ro \"$RINGER_HOME\""
        });
        assert_eq!(hook("Stop"), "");
        let spool =
            fs::read_dir(runtime.join("ringer")).expect("it was made").flatten().next().expect("one").path();
        assert_eq!(waiting(spool.clone()), 1, "{mount}");
        mounts.sh(if is_full {
            "rm \"$RINGER_HOME/filler\""
        } else {
            "mount -o remount,bind,rw \"$RINGER_HOME\""
        });
        let mut log = mounts.ringer(&["log", "--json"]);
        let (out, _) = check(log.env("XDG_RUNTIME_DIR", &runtime), 0);
        assert_eq!((types(&out), waiting(spool)), (vec!["complete".to_owned()], 0), "{mount}");
    }
}

#[test]
fn what_can_be_written_nowhere_is_counted_and_told() {
    let environment = TestEnvironment::new();
    play(&environment, "claude_UserPromptSubmit");
    // A file in the place of the spool, and no runtime directory.
    fs::write(environment.home().join("spool"), "in the way").expect("a file");
    let held = hold_lock(&environment);
    assert_eq!(play(&environment, "claude_Stop"), "");
    drop(held);
    let (status, _) = check(&mut environment.ringer(&["status"]), 0);
    assert!(status.contains("1 lost since"), "{status}");
    assert_eq!(kinds(&environment), ["error"], "the person is told");
    check(&mut environment.ringer(&["doctor"]), 1);
}

fn start_stop(environment: &TestEnvironment, session: usize) -> Child {
    let mut input = recorded(environment, "claude_Stop");
    input["session_id"] = json!(format!("{session:08x}-d2b2-442c-995b-a5ac36193cd6"));
    let mut command: Command = environment.ringer(&["hook", "claude", "Stop"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the hook starts");
    child.stdin.take().expect("piped").write_all(input.to_string().as_bytes()).expect("it reads");
    child
}

#[test]
fn a_hundred_agents_that_stop_at_the_same_moment_are_all_heard() {
    const AGENTS: usize = 100;
    let environment = TestEnvironment::new();
    environment.notify("the journal is there");
    let hooks: Vec<Child> = (0..AGENTS).map(|session| start_stop(&environment, session)).collect();
    for mut hook in hooks {
        assert!(hook.wait().expect("it ends").success());
    }
    let log = lines(&environment.run(&["log", "--json"]));
    let mut completed: Vec<String> =
        log.iter().filter(|line| line["type"] == "complete").map(|line| line["from"].to_string()).collect();
    completed.sort();
    let all = completed.len();
    completed.dedup();
    assert_eq!((all, completed.len()), (AGENTS, AGENTS));
}
