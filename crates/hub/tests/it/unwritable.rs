//! Files that cannot be written for a while: what the hub has to write waits, the person is told, and nothing is lost.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::until;

use crate::hub::TestHub;

const SETTINGS: &str = "[notify]\npopup = \"off\"\nrate_limit = \"off\"\n";
/// Messages that may wait.
const MAX_WAITING: usize = 1024;

/// A lock file in whose place there is a directory: every write fails as on a disk that refuses it, until that is removed.
struct Refusing {
    lock: PathBuf,
}

impl Refusing {
    fn begin(hub: &TestHub, lock: &str) -> Self {
        let lock = hub.home().path().join(lock);
        // It is made with the first write.
        let _ = fs::remove_file(&lock);
        fs::create_dir(&lock).expect("a directory");
        Self { lock }
    }

    fn end(self) {
        fs::remove_dir(&self.lock).expect("it is empty");
    }
}

fn heard(hub: &TestHub, body: &str) {
    hub.call("surface.heard", &json!({ "surface_id": body, "body": body }));
}

/// The newest first.
fn bodies(hub: &TestHub) -> Vec<String> {
    let listed = hub.call("notification.list", &json!({}));
    let rows = listed.as_array().expect("a list").iter();
    rows.map(|row| row["body"].as_str().expect("a text").to_owned()).collect()
}

fn problem(hub: &TestHub) -> String {
    let problems = &hub.call("hub.status", &Value::Null)["problems"];
    problems[0]["text"].as_str().unwrap_or_default().to_owned()
}

/// How often the log says this.
fn said(hub: &TestHub, words: &str) -> usize {
    let log = fs::read_to_string(hub.home().path().join("hub.log")).expect("a log");
    log.lines().filter(|line| line.contains(words)).count()
}

#[test]
fn what_terminals_say_while_the_journal_cannot_be_written_comes_later_in_its_order() {
    let hub = TestHub::start(SETTINGS);
    hub.send("before");
    until("it is listed", || bodies(&hub) == ["before"]);
    let refusing = Refusing::begin(&hub, "write.lock");
    for body in ["one", "two", "three"] {
        heard(&hub, body);
    }
    assert!(problem(&hub).contains("terminal reports are kept in memory"), "{}", problem(&hub));
    let toast = |hub: &TestHub| hub.call("hub.status", &Value::Null)["problems"][0]["hint"].clone();
    assert_eq!(toast(&hub), "ringer doctor");
    // An agent's title changed: its state is written, too.
    let working = json!({ "authority": "title", "says": { "is": { "state": "working" } }, "text": "fix it", "pending": false });
    hub.call("surface.heard", &json!({ "surface_id": "agent", "signal": working }));
    assert_eq!(bodies(&hub), ["before"]);
    refusing.end();
    until("they are listed", || bodies(&hub) == ["three", "two", "one", "before"]);
    until("the state is written", || hub.call("agent.list", &Value::Null)[0]["state"] == "working");
    until("it is no problem any more", || problem(&hub).is_empty());
    assert_eq!(said(&hub, "cannot write into the journal"), 1, "and not with every try");
    assert_eq!(said(&hub, "no longer a problem"), 1);
    let refusing = Refusing::begin(&hub, "write.lock");
    heard(&hub, "again");
    assert!(!problem(&hub).is_empty());
    assert_eq!(said(&hub, "cannot write into the journal"), 2);
    refusing.end();
    until("it is listed", || bodies(&hub).first().is_some_and(|newest| newest == "again"));
}

#[test]
fn what_the_hub_decided_is_written_later_and_the_log_says_it_once() {
    let hub = TestHub::start(SETTINGS);
    let refusing = Refusing::begin(&hub, "hub.lock");
    let id = hub.send("decided meanwhile");
    until("it is listed", || bodies(&hub) == ["decided meanwhile"]);
    until("it is a problem", || !problem(&hub).is_empty());
    // The journal can be written, so the problem would be over if it was the only file.
    heard(&hub, "meanwhile");
    until("it is listed", || bodies(&hub).len() == 2);
    assert!(!problem(&hub).is_empty());
    refusing.end();
    until("it is no problem any more", || problem(&hub).is_empty());
    assert_eq!(said(&hub, "cannot write down what happened"), 1);
    until("it is written", || hub.memory().notification(id.as_str()).is_ok_and(|found| found.is_some()));
}

#[test]
fn what_there_is_no_room_for_is_counted_and_told() {
    let hub = TestHub::start(SETTINGS);
    let refusing = Refusing::begin(&hub, "write.lock");
    for number in 0..MAX_WAITING + 3 {
        heard(&hub, &format!("number {number}"));
    }
    until("it is counted", || problem(&hub).ends_with("; 3 were dropped"));
    refusing.end();
    let newest = || hub.call("notification.list", &json!({ "limit": 2 }));
    until("it is told", || newest()[0]["title"] == "Ringer: 3 reports were lost");
    let listed = newest();
    assert_eq!(listed[1]["body"], format!("number {}", MAX_WAITING - 1), "{listed}");
    assert_eq!(said(&hub, "newer ones are dropped"), 1);
}
