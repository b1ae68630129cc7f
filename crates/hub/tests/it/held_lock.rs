//! A writer that is stopped holds a write lock: the hub goes on, and nothing is lost.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::until;

use crate::hub::TestHub;

const SETTINGS: &str = "[notify]\npopup = \"off\"\nrate_limit = \"off\"\n";
fn hold(hub: &TestHub, lock: &str) -> File {
    let path = hub.home().path().join(lock);
    let file = OpenOptions::new().append(true).create(true).open(path).expect("a lock");
    file.lock().expect("it comes free");
    file
}

/// Less than the time for which a command waits for a lock, which the loop must not. The loop may wait for each of two locks for a
/// tenth of a second; the rest is for a busy machine.
const ANSWER_DEADLINE: Duration = Duration::from_secs(4);

/// Asks for something, and fails if the answer comes too late. Gives the whole answer.
#[track_caller]
fn ask(hub: &TestHub, method: &str, params: &Value) -> Value {
    let mut stream = UnixStream::connect(hub.socket()).expect("it listens");
    stream.set_read_timeout(Some(ANSWER_DEADLINE)).expect("a timeout");
    let line = json!({ "id": "1", "method": method, "params": params });
    stream.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer in time");
    serde_json::from_str(&answer).expect("JSON")
}

#[track_caller]
fn check_busy(hub: &TestHub, method: &str, params: &Value) {
    let answer = ask(hub, method, params);
    assert_eq!(answer["error"]["code"], "busy", "{answer}");
}

#[track_caller]
fn check_ok(hub: &TestHub, method: &str, params: &Value) -> Value {
    let answer = ask(hub, method, params);
    assert_eq!(answer["error"], Value::Null, "{answer}");
    answer["result"].clone()
}

fn bodies(hub: &TestHub) -> Vec<String> {
    let listed = hub.call("notification.list", &json!({}));
    let rows = listed.as_array().expect("a list").iter();
    rows.map(|row| row["body"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn the_journals_lock_delays_no_answer_and_what_changes_something_is_refused() {
    let hub = TestHub::start(SETTINGS);
    let id = hub.send("before");
    until("it is listed", || bodies(&hub) == ["before"]);
    let held = hold(&hub, "write.lock");
    // Many at once: the loop waits once, and not for each of them.
    for _ in 0..3 {
        let status = check_ok(&hub, "hub.status", &Value::Null);
        assert_eq!(status["unread"], 1, "{status}");
        check_busy(&hub, "notification.mark_read", &json!({ "id": id }));
        check_busy(&hub, "notification.create", &json!({ "body": "refused" }));
    }
    // What the hub itself has to append: a terminal showed a notification.
    let shown = json!({ "surface_id": "s", "body": "shown meanwhile" });
    check_ok(&hub, "surface.heard", &shown);
    assert_eq!(bodies(&hub), ["before"]);
    drop(held);
    until("it is appended", || bodies(&hub) == ["shown meanwhile", "before"]);
    hub.mark_read(&id);
    assert!(hub.is_read(&id));
}

#[test]
fn what_waits_for_the_lock_is_written_before_the_hub_ends() {
    let mut hub = TestHub::start(SETTINGS);
    let held = hold(&hub, "write.lock");
    check_ok(&hub, "surface.heard", &json!({ "surface_id": "s", "body": "shown" }));
    check_ok(&hub, "hub.stop", &Value::Null);
    drop(held);
    hub.end();
    hub.begin();
    until("it is listed", || bodies(&hub) == ["shown"]);
}

#[test]
fn the_hub_stores_lock_delays_no_answer_and_what_was_decided_is_written_later() {
    let mut hub = TestHub::start(SETTINGS);
    let held = hold(&hub, "hub.lock");
    let id = hub.send("decided meanwhile");
    until("it is listed", || bodies(&hub) == ["decided meanwhile"]);
    for _ in 0..3 {
        check_ok(&hub, "hub.status", &Value::Null);
    }
    check_ok(&hub, "notification.mark_read", &json!({ "id": id }));
    drop(held);
    until("it is written", || hub.memory().notification(id.as_str()).is_ok_and(|found| found.is_some()));
    hub.end();
    hub.begin();
    until("it is read", || hub.is_read(&id));
}
