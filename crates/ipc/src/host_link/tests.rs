//! The rules, one at a time, and the threads with a real socket.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};

use ringer_journal::Home;
use serde_json::json;

use super::reports::MAX_REPORTS;
use super::state::ANSWERS_SOON;
use super::*;
use crate::discovery::{HubAddress, socket_path};

fn facts(surfaces: &[&str]) -> HostFacts {
    let describe = |surface: &&str| ((*surface).to_owned(), json!({ "surface_id": surface }));
    HostFacts { surfaces: surfaces.iter().map(describe).collect(), views: Some(json!({ "views": [] })) }
}

fn report(surface: &str) -> HostReport {
    HostReport::new(ReportMethod::Terminal, json!({ "surface_id": surface }), Instant::now())
}

/// A link with a connection.
fn connected() -> (LinkState, Instant) {
    let (mut link, now) = (LinkState::new(true, false), Instant::now());
    assert_eq!(link.next_step(now), Step::Wait(None));
    link.begin();
    assert_eq!(link.next_step(now), Step::Connect { may_start: true });
    link.connected(now);
    (link, now)
}

/// The methods of the requests that are sent now.
fn sent(link: &mut LinkState, now: Instant) -> Vec<&'static str> {
    let next = || match link.next_step(now) {
        Step::Send(request) => Some(request.method),
        _ => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_surface_is_closed_after_the_reports_about_it() {
    let (mut link, now) = connected();
    link.set_facts(facts(&["a", "b"]));
    assert_eq!(sent(&mut link, now), ["surface.opened", "surface.views"]);
    link.report(report("a"));
    link.set_facts(facts(&["b"]));
    link.moment(Request { method: "surface.focused", params: Value::Null });
    assert_eq!(sent(&mut link, now), ["surface.focused", "surface.heard", "surface.closed"]);
}

#[test]
fn a_fact_that_was_replaced_before_it_was_sent_is_not_sent() {
    let (mut link, now) = connected();
    link.set_facts(facts(&["a"]));
    link.set_facts(facts(&["b"]));
    let Step::Send(opened) = link.next_step(now) else { panic!("it has facts") };
    assert_eq!(opened.params, json!({ "surfaces": [{ "surface_id": "b" }] }));
    assert_eq!(sent(&mut link, now), ["surface.views"]);
    link.set_facts(facts(&["a", "b"]));
    link.set_facts(facts(&["b"]));
    assert!(sent(&mut link, now).is_empty());
}

#[test]
fn presence_and_moments_are_for_the_hub_of_the_moment() {
    let (mut link, now) = (LinkState::new(true, false), Instant::now());
    link.begin();
    link.set_facts(facts(&[]));
    link.present();
    // It is about to connect.
    assert_eq!(link.next_step(now), Step::Connect { may_start: true });
    link.connected(now);
    let Step::Send(looks) = link.next_step(now) else { panic!("the person is present") };
    assert_eq!(looks.params, json!({ "views": [], "present": true }));
    link.present();
    link.moment(Request { method: "surface.glanced", params: Value::Null });
    assert!(link.lost(None, now) && !link.lost(None, now));
    link.present();
    link.connected(now);
    let Step::Send(looks) = link.next_step(now) else { panic!("it has views") };
    assert_eq!(looks.params, json!({ "views": [] }));
    assert!(sent(&mut link, now).is_empty());
}

#[test]
fn a_hub_that_cannot_write_is_sent_its_reports_again_when_it_can() {
    let (mut link, now) = connected();
    for _ in 0..3 {
        link.report(report("a"));
    }
    assert_eq!(sent(&mut link, now).len(), 3);
    assert!(link.answered(None, now));
    for _ in 0..2 {
        assert!(!link.answered(Some("busy"), now));
    }
    link.report(report("a"));
    link.moment(Request { method: "surface.focused", params: Value::Null });
    assert_eq!(sent(&mut link, now), ["surface.focused"], "facts and moments need no disk");
    link.writable();
    assert_eq!(sent(&mut link, now).len(), 3);
    assert!(!link.answered(None, now), "that was the moment");
    assert!(link.answered(Some("invalid_params"), now), "it would be refused again");
    assert!(link.kept_reports(now).is_empty(), "the hub may take a moment");
    let now = Instant::now();
    assert_eq!(link.kept_reports(now + ANSWERS_SOON).len(), 2);
    link.lost(None, now);
    assert_eq!(link.kept_reports(now).len(), 2);
}

#[test]
fn a_closed_link_tries_once_to_deliver_its_reports() {
    let (mut link, now) = connected();
    link.report(report("a"));
    assert_eq!(sent(&mut link, now), ["surface.heard"]);
    link.close();
    assert!(matches!(link.next_step(now), Step::Wait(_)), "it waits for the answer");
    link.lost(None, now);
    assert_eq!(link.next_step(now), Step::Connect { may_start: true });
    link.connect_failed(now);
    assert_eq!(link.next_step(now), Step::End);
    let (mut link, now) = connected();
    link.report(report("a"));
    assert_eq!(sent(&mut link, now), ["surface.heard"]);
    link.close();
    assert!(link.answered(None, now));
    assert_eq!(link.next_step(now), Step::End);
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum Order {
    Focus { surface_id: String },
}

/// A home, and the listener of its hub.
fn home() -> (tempfile::TempDir, Home, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new(directory.path().join("home"));
    std::fs::create_dir(home.path()).unwrap();
    let socket = socket_path(&home, None).unwrap();
    let address = HubAddress { socket: socket.clone(), pid: std::process::id(), version: String::new() };
    address.write(&home).unwrap();
    (directory, home, socket)
}

fn start(home: Home, socket: PathBuf) -> (HostLink, Receiver<LinkEvent<Order>>) {
    let options = HostOptions {
        attach: json!({ "name": "test" }),
        connect: Box::new(move |_| HubClient::connect(&home).ok()),
        socket: Some(socket),
        restarts_hub: true,
        is_detached_when_empty: false,
    };
    let (sender, events) = channel();
    (HostLink::start(options, move |event| sender.send(event).unwrap_or_default()), events)
}

/// The next host, after its `host.attach` was answered.
fn next_host(listener: &UnixListener) -> BufReader<UnixStream> {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    assert_eq!(next_request(&mut stream)["method"], "host.attach");
    answer(&mut stream, "{}");
    stream
}

fn next_request(stream: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn answer(stream: &mut BufReader<UnixStream>, result: &str) {
    stream.get_mut().write_all(format!("{{\"id\":1,\"ok\":true,\"result\":{result}}}\n").as_bytes()).unwrap();
}

#[track_caller]
fn expect(events: &Receiver<LinkEvent<Order>>, expected: &LinkEvent<Order>) {
    assert_eq!(&events.recv_timeout(Duration::from_secs(20)).unwrap(), expected);
}

#[test]
fn a_report_that_a_hub_did_not_answer_goes_to_the_next_one_after_the_facts() {
    let (_directory, home, socket) = home();
    let (link, events) = start(home, socket.clone());
    link.set_facts(facts(&["a"]));
    link.begin();
    link.report(ReportMethod::Terminal, json!({ "surface_id": "a", "body": "done" }));
    let listener = UnixListener::bind(&socket).unwrap();
    let methods = ["surface.opened", "surface.views", "surface.heard"];
    let mut reports = BTreeSet::new();
    for _ in 0..2 {
        let mut hub = next_host(&listener);
        expect(&events, &LinkEvent::Connected);
        for method in methods {
            let request = next_request(&mut hub);
            assert_eq!(request["method"], method);
            reports.extend(request["params"]["report"].as_str().map(str::to_owned));
        }
        answer(&mut hub, "{}");
        drop(hub);
        expect(&events, &LinkEvent::Lost);
    }
    assert_eq!(reports.len(), 1, "it keeps its id");
    let mut hub = next_host(&listener);
    expect(&events, &LinkEvent::Connected);
    hub.get_mut().write_all(b"{\"event\":\"focus\",\"data\":{\"surface_id\":\"a\"}}\n").unwrap();
    expect(&events, &LinkEvent::Order(Order::Focus { surface_id: "a".to_owned() }));
    hub.get_mut().write_all(b"{\"event\":\"unknown\",\"data\":{}}\n").unwrap();
    for _ in methods {
        next_request(&mut hub);
        answer(&mut hub, "{}");
    }
    expect(&events, &LinkEvent::Answered);
    assert!(link.kept_reports(Instant::now() + ANSWERS_SOON).is_empty());
    link.finish(Duration::from_secs(20));
    assert_eq!(hub.read_line(&mut String::new()).unwrap(), 0, "it has ended");
}

/// As a server of panes reports that reads what its programs wrote while there was none.
#[test]
fn a_host_never_waits_and_of_too_many_reports_the_newest_come_in_their_order() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let (link, events) = start(home, socket);
    link.begin();
    let mut hub = next_host(&listener);
    expect(&events, &LinkEvent::Connected);
    // This hub reads nothing.
    let all = MAX_REPORTS + 1000;
    for number in 0..all {
        link.report(ReportMethod::Terminal, json!({ "number": number }));
        link.set_facts(HostFacts { views: Some(json!({ "number": number })), ..HostFacts::default() });
    }
    let reading = thread::spawn(move || {
        let mut numbers = Vec::new();
        while numbers.last() != Some(&(all as u64 - 1)) {
            let request = next_request(&mut hub);
            if request["method"] == "surface.heard" {
                numbers.extend(request["params"]["number"].as_u64());
            }
            answer(&mut hub, "{}");
        }
        numbers
    });
    let numbers = reading.join().unwrap();
    let newest = ((all - MAX_REPORTS) as u64..all as u64).collect::<Vec<_>>();
    assert!(numbers.is_sorted() && numbers.ends_with(&newest), "{} came", numbers.len());
    link.finish(Duration::from_secs(20));
}
