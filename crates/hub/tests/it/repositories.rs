//! Repositories: their settings hold for the first message from them, and one that hangs delays no other message.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_config::{Trusted, load_repository};
use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, MessageOrigin, Tag};
use ringer_core::{Draft, MessageId, Scope, Sender};
use ringer_hub::trust_file;
use serde_json::{Value, json};
use test_support::{HangingDirectory, make_fifo, until};

use crate::hub::{Sink, TestHub, draft};

/// Something that hangs would take for ever; this is far more than a hub needs.
const PROMPTLY: Duration = Duration::from_secs(10);

fn hub(more: &str) -> TestHub {
    TestHub::start(&format!("[notify]\npopup = \"off\"\nrate_limit = \"off\"\n{more}"))
}

/// A message from a directory.
pub(crate) fn from(directory: &Path, body: &str) -> Draft {
    let origin = MessageOrigin { cwd: directory.to_str().map(str::to_owned), ..MessageOrigin::default() };
    Draft { scope: Scope::new("0a0a0a0a").expect("a scope"), origin, ..draft(body) }
}

pub(crate) fn worktree(hub: &TestHub, name: &str) -> PathBuf {
    let root = hub.path(name);
    fs::create_dir_all(root.join(".git/objects")).expect("a directory");
    fs::create_dir_all(root.join(".git/refs")).expect("a directory");
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    root
}

pub(crate) fn set_hook(root: &Path, id: &str, script: &str) {
    let hook = format!("[[hook]]\nid = \"{id}\"\ncommand = {}\n", json!(["sh", "-c", script]));
    fs::write(root.join(".ringer.toml"), hook).expect("a file");
}

pub(crate) fn trust(hub: &TestHub, root: &Path) {
    let mut trusted = Trusted::default();
    trusted.trust(&load_repository(root, None).expect("settings").hooks[0]);
    trusted.save(&trust_file(hub.home())).expect("it is written");
}

/// Ends a hub while the directory hangs.
#[track_caller]
pub(crate) fn end_promptly(hub: &mut TestHub, hanging: &Arc<HangingDirectory>) {
    let (ended, waits) = channel::<()>();
    let directory = Arc::clone(hanging);
    // A hub that hangs with it must not take the test along.
    let rescue = thread::spawn(move || {
        if waits.recv_timeout(PROMPTLY) == Err(RecvTimeoutError::Timeout) {
            directory.release();
        }
    });
    let begun = Instant::now();
    hub.end();
    let took = begun.elapsed();
    drop(ended);
    rescue.join().expect("it waited");
    assert!(took < PROMPTLY, "{took:?}");
}

/// How often the hub went on without an answer.
fn given_up(hub: &TestHub) -> usize {
    let log = fs::read_to_string(hub.home().path().join("hub.log")).expect("a log");
    log.lines().filter(|line| line.contains("does not answer: going on")).count()
}

fn listed(hub: &TestHub) -> Vec<String> {
    let rows = hub.call("notification.list", &Value::Null);
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row["body"].as_str().expect("a text").to_owned()).collect()
}

fn clear_all() -> Draft {
    let mut clear = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Clear), "");
    clear.key = Some(MarkTarget::All.to_string());
    clear
}

#[track_caller]
fn was_passed_over(hub: &TestHub, id: &MessageId, hook: &str) {
    let trail = hub.wait_for_step(id, "channels: ");
    let steps = trail.iter().filter(|step| step.starts_with("hook "));
    let expected = format!("hook {hook} did not run: not trusted");
    assert_eq!(steps.collect::<Vec<_>>(), [&expected], "{trail:?}");
}

#[test]
fn one_that_hangs_delays_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let mut hub = hub(&sink.command());
    let Some(hanging) = HangingDirectory::new().map(Arc::new) else { return };
    hub.append(&from(&hanging.path(), "from where it hangs"));
    let begun = Instant::now();
    assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
    assert_eq!(listed(&hub), ["from where it hangs"], "a list shows what was written before it");
    sink.wait_for(&["from where it hangs"]);
    assert!(begun.elapsed() < PROMPTLY, "{:?}", begun.elapsed());
    assert_eq!(given_up(&hub), 1);
    let others: Vec<String> = (0..20).map(|number| format!("number {number}")).collect();
    for (number, body) in others.iter().enumerate() {
        hub.send_from(&format!("elsewhere-{number}"), body);
    }
    sink.wait_for(&others.iter().map(String::as_str).collect::<Vec<_>>());
    // It is known by now: no message waits for it again.
    for number in 0..3 {
        hub.append(&from(&hanging.path(), &format!("again {number}")));
        assert!(listed(&hub).contains(&format!("again {number}")));
    }
    assert_eq!((listed(&hub).len(), given_up(&hub)), (24, 1));
    end_promptly(&mut hub, &hanging);
}

/// A FIFO made a probe wait, and a link to a device without an end filled the memory.
#[test]
fn what_is_no_git_directory_is_passed_over_at_once() {
    let hub = hub("");
    let zero = |path: &Path| symlink("/dev/zero", path).expect("a link");
    let mut expected = Vec::new();
    for (kind, make) in [("fifo", &make_fifo as &dyn Fn(&Path)), ("zero", &zero)] {
        for name in [".git", ".git/commondir", ".git/ringer", ".git/config"] {
            let root = hub.path(&format!("{kind}{}", expected.len()));
            match name {
                ".git" => fs::create_dir(&root).expect("a directory"),
                _ => drop(worktree(&hub, root.to_str().expect("text"))),
            }
            make(&root.join(name));
            expected.push(format!("{kind} at {name}"));
            hub.append(&from(&root, &expected[expected.len() - 1]));
        }
    }
    until("all have come", || listed(&hub).len() == expected.len());
    assert_eq!(given_up(&hub), 0);
}

#[test]
fn what_is_behind_a_held_message_stays_behind_it() {
    let hub = hub("");
    let (Some(one), Some(two)) = (HangingDirectory::new(), HangingDirectory::new()) else { return };
    hub.append(&from(&one.path(), "first"));
    hub.append(&clear_all());
    assert!(listed(&hub).is_empty(), "it was cleared after it came");
    // The same by a request, which answers with what came of it.
    hub.append(&from(&two.path(), "second"));
    let cleared = hub.call("notification.clear", &json!({ "all": true }));
    assert_eq!(cleared, json!({ "read": 1, "unread_again": 0, "removed": 1, "unread": 0 }));
    assert_eq!(given_up(&hub), 2);
}

#[test]
fn what_was_held_when_a_hub_ended_is_taken_by_the_next() {
    let mut hub = hub("");
    let Some(hanging) = HangingDirectory::new().map(Arc::new) else { return };
    hub.append(&from(&hanging.path(), "held"));
    end_promptly(&mut hub, &hanging);
    hub.begin();
    assert_eq!(listed(&hub), ["held"]);
}

#[test]
fn one_that_hangs_does_not_hide_the_settings_of_another() {
    let mut hub = hub("");
    let good = worktree(&hub, "good");
    set_hook(&good, "theirs", "true");
    let Some(hanging) = HangingDirectory::new().map(Arc::new) else { return };
    hub.end();
    hub.append(&from(&hanging.path(), "one batch"));
    let id = hub.append(&from(&good, "for both"));
    hub.begin();
    was_passed_over(&hub, &id, "theirs");
    assert_eq!(given_up(&hub), 1);
}

#[test]
fn its_hook_sees_the_first_message_and_none_after_it_changed() {
    let hub = hub("");
    let root = worktree(&hub, "checkout");
    set_hook(&root, "theirs", r#"echo '{"notification":{"title":"patched"}}'"#);
    trust(&hub, &root);
    // Whether that changes something is not certain: the hub watches its settings, and may have looked already.
    hub.call("hub.reload", &Value::Null);
    let id = hub.append(&from(&root, "first"));
    hub.wait_for_step(&id, "hook theirs changed it");
    set_hook(&root, "theirs", "reboot");
    let id = hub.append(&from(&root, "after it changed"));
    was_passed_over(&hub, &id, "theirs");
    // A message from elsewhere makes the hub look, and so does `hub.reload`.
    assert_eq!(hub.call("hub.reload", &Value::Null)["changed"], false);
    fs::remove_file(root.join(".ringer.toml")).expect("removed");
    assert_eq!(hub.call("hub.reload", &Value::Null)["changed"], true, "it was looked at");
}

#[test]
fn each_message_has_the_settings_of_its_own_worktree() {
    let mut hub = hub("");
    let (one, two) = (worktree(&hub, "one"), worktree(&hub, "two"));
    set_hook(&one, "one", "true");
    set_hook(&two, "two", "true");
    hub.end();
    let ids = [&one, &two, &one].map(|root| hub.append(&from(root, "hello")));
    hub.begin();
    for (id, hook) in ids.iter().zip(["one", "two", "one"]) {
        was_passed_over(&hub, id, hook);
    }
}

#[test]
fn what_was_undecided_when_a_hub_ended_meets_its_hook_again() {
    let mut hub = hub("");
    let root = worktree(&hub, "checkout");
    let script = r#"[ -e go ] || exec sleep 1000; echo '{"notification":{"title":"patched"}}'"#;
    set_hook(&root, "theirs", script);
    trust(&hub, &root);
    hub.call("hub.reload", &Value::Null);
    let id = hub.append(&from(&root, "hello"));
    until("its hook runs", || hub.call("hub.status", &Value::Null)["undecided"] == 1);
    hub.end();
    fs::write(root.join("go"), "").expect("a file");
    hub.begin();
    hub.wait_for_step(&id, "hook theirs changed it");
}
