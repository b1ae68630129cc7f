//! Files that cannot be written for a while: what the hub has to write waits, the person is told, and nothing is lost.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use ringer_ipc::{HostFacts, HostLink, HostOptions, HubClient, HubClientError, LinkEvent, ReportMethod};
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
    assert!(problem(&hub).contains("what terminals report waits"), "{}", problem(&hub));
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
fn what_there_is_no_room_for_is_refused() {
    let hub = TestHub::start(SETTINGS);
    let refusing = Refusing::begin(&hub, "write.lock");
    for number in 0..MAX_WAITING {
        heard(&hub, &format!("number {number}"));
    }
    let mut client = HubClient::connect(hub.home()).expect("a hub");
    let refused = client.call("surface.heard", &json!({ "surface_id": "s", "body": "one more" }));
    assert!(matches!(refused, Err(HubClientError::Refused(error)) if error.code == "busy"));
    refusing.end();
    let newest = || hub.call("notification.list", &json!({ "limit": 1 }))[0]["body"].clone();
    until("all is written", || newest() == format!("number {}", MAX_WAITING - 1));
}

/// The link of a host that has one surface.
fn link(hub: &TestHub) -> HostLink {
    let home = hub.home().clone();
    let options = HostOptions {
        attach: json!({ "name": "mine" }),
        connect: Box::new(move |_| HubClient::connect(&home).ok()),
        socket: Some(hub.socket()),
        restarts_hub: false,
        is_detached_when_empty: false,
    };
    let link = HostLink::start(options, |_: LinkEvent<Value>| {});
    let surfaces = [("s".to_owned(), json!({ "surface_id": "s", "workspace_id": "w" }))].into();
    link.set_facts(HostFacts { surfaces, views: None });
    link.begin();
    until("it is a host", || !hub.call("surface.list", &Value::Null)[0].is_null());
    link
}

fn report(link: &HostLink, body: &str) {
    link.report(ReportMethod::Terminal, json!({ "surface_id": "s", "body": body }));
}

#[test]
fn a_host_keeps_its_reports_until_the_hub_can_write() {
    let hub = TestHub::start(SETTINGS);
    let link = link(&hub);
    report(&link, "before");
    until("it is listed", || bodies(&hub) == ["before"]);
    let refusing = Refusing::begin(&hub, "write.lock");
    for body in ["one", "two", "three"] {
        report(&link, body);
    }
    until("the person is told", || !problem(&hub).is_empty());
    until("they wait", || link.kept_reports(Instant::now()).len() == 3);
    refusing.end();
    until("they are listed", || bodies(&hub) == ["three", "two", "one", "before"]);
    until("they are answered", || link.kept_reports(Instant::now()).is_empty());
    report(&link, "after");
    until("it is listed", || bodies(&hub).len() == 5);
    assert_eq!(bodies(&hub), ["after", "three", "two", "one", "before"]);
}

#[test]
fn what_a_hub_could_not_write_before_it_ended_comes_once_from_its_hosts() {
    let mut hub = TestHub::start(SETTINGS);
    let link = link(&hub);
    let refusing = Refusing::begin(&hub, "write.lock");
    for body in ["one", "two"] {
        report(&link, body);
    }
    until("the person is told", || !problem(&hub).is_empty());
    hub.end();
    refusing.end();
    hub.begin();
    until("they are listed", || bodies(&hub) == ["two", "one"]);
    until("they are answered", || link.kept_reports(Instant::now()).is_empty());
    assert_eq!(bodies(&hub), ["two", "one"]);
}
