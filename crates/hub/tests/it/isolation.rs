//! Other notifications arrive while a program, a terminal or a server hangs.

use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{BlockingNotificationServer, HangingDirectory, ServerBehaviour, SessionBus, until};

use crate::hub::{Sink, TestHub};
use crate::repositories::end_promptly;
use crate::terminal::Terminal;

/// More than would fit one after the other into the time that is waited, were each of them held up.
const OTHERS: usize = 20;

fn others() -> Vec<String> {
    (0..OTHERS).map(|number| format!("number {number}")).collect()
}

#[track_caller]
fn all_arrive(hub: &TestHub, sink: &Sink) {
    let others = others();
    for (number, body) in others.iter().enumerate() {
        hub.send_from(&format!("elsewhere-{number}"), body);
    }
    sink.wait_for(&others.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_desktop_that_never_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Hangs);
    let settings = format!("[notify]\npopup = \"desktop\"\nrate_limit = \"off\"\n{}", sink.command());
    let hub = TestHub::with_bus(&settings, Some(bus.address()));
    hub.send_from("tmux:s1", "hangs");
    server.next_popup();
    all_arrive(&hub, &sink);
    // What is read while its popup hangs is not waited for either.
    hub.call("notification.mark_read", &json!({ "all": true }));
    assert_eq!(hub.call("hub.status", &Value::Null)["unread"], 0);
}

#[test]
fn a_hook_that_never_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let script = "case \"$RINGER_NOTIFICATION_BODY\" in hangs*) exec sleep 1000;; esac";
    let command = json!(["sh", "-c", script]);
    let settings = format!(
        "[notify]\npopup = \"off\"\nrate_limit = \"off\"\n{}[[hook]]\nid = \"h\"\ncommand = {command}\ntimeout_ms = 600000\n",
        sink.command()
    );
    let hub = TestHub::start(&settings);
    let stuck = hub.send_from("tmux:s1", "hangs");
    hub.send_from("tmux:s1", "behind it");
    until("it hangs", || hub.call("hub.status", &Value::Null)["undecided"] == 2);
    all_arrive(&hub, &sink);
    assert_eq!(hub.call("hub.status", &Value::Null)["undecided"], 2, "they still wait, in order");
    assert!(!sink.lines().contains(&"behind it".to_owned()));
    // Clearing its place lets nothing of it come back.
    hub.call("notification.clear", &json!({ "surface_id": "tmux:s1" }));
    assert_eq!(hub.call("notification.list", &json!({ "surface_id": "tmux:s1" })), json!([]));
    assert!(hub.trail(&stuck).len() <= 1);
}

#[test]
fn a_terminal_that_was_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let settings = format!("[notify]\npopup = \"terminal\"\nrate_limit = \"off\"\n{}", sink.command());
    let hub = TestHub::start(&settings);
    let (terminal, other) = (Terminal::kitty(), Terminal::kitty());
    terminal.stop();
    let stuck = hub.append(&terminal.says("hangs"));
    hub.append(&other.says("another terminal"));
    other.wait_for("another terminal");
    all_arrive(&hub, &sink);
    hub.wait_for_step(&stuck, "terminal failed: ");
    // Its own command ran as well.
    sink.wait_for(&["hangs"]);
    assert!(terminal.told().is_empty());
}

#[test]
fn commands_that_never_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let hub =
        TestHub::start("[notify]\npopup = \"off\"\nrate_limit = \"off\"\ncommand = [\"sleep\", \"1000\"]\n");
    for number in 0..40 {
        hub.send(&format!("hangs {number}"));
    }
    until("many hang", || hub.call("hub.status", &Value::Null)["under_way"] == 40);
    // Popups and hooks have nothing to do with it; and the list is there at once.
    let terminal = Terminal::kitty();
    hub.set(&format!("[notify]\npopup = \"terminal\"\nrate_limit = \"off\"\n{}", sink.command()));
    hub.append(&terminal.says("hello"));
    terminal.wait_for("hello");
    assert_eq!(hub.call("notification.list", &Value::Null).as_array().map(Vec::len), Some(41));
}

#[test]
fn programs_on_a_disk_that_hangs() {
    let Some(hanging) = HangingDirectory::new().map(Arc::new) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let (hook, command) = (json!([hanging.path().join("hook")]), json!([hanging.path().join("command")]));
    let begin = "[notify]\npopup = \"off\"\nrate_limit = \"off\"\n";
    let hook = format!("[[hook]]\nid = \"h\"\ncommand = {hook}\ntimeout_ms = 100\n");
    let mut hub = TestHub::start(&format!("{begin}command = {command}\n{hook}"));
    let first = hub.send("hangs");
    let trail = hub.wait_for_step(&first, "channels: ");
    let why = "hook h failed: cannot be started: no answer from the disk of ";
    assert!(trail.iter().any(|step| step.starts_with(why)), "{trail:?}");
    for number in 0..40 {
        hub.send(&format!("hangs {number}"));
    }
    until("many hang", || hub.call("hub.status", &Value::Null)["under_way"] == 41);
    // More commands hang than may run at once. One that does not hang runs nevertheless.
    hub.set(&format!("{begin}{}", sink.command()));
    hub.send("hello");
    sink.wait_for(&["hello"]);
    // And the hub ends, although the disk never answers.
    end_promptly(&mut hub, &hanging);
}
