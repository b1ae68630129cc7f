//! Tests with a slow hub.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use ringer_ipc::discovery::{HubAddress, socket_path};
use ringer_journal::Home;
use test_support::until;

use super::said::MAX_WAITING;
use super::*;

/// A home and the listener of its hub.
fn home() -> (tempfile::TempDir, Home, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new(directory.path().join("home"));
    std::fs::create_dir(home.path()).unwrap();
    let socket = socket_path(&home, None).unwrap();
    let address = HubAddress { socket: socket.clone(), pid: std::process::id(), version: String::new() };
    address.write(&home).unwrap();
    (directory, home, socket)
}

fn start(home: Home, socket: PathBuf) -> HubHost {
    let connect: Connect = Box::new(move |_| HubClient::connect(&home).ok());
    HubHost::start_talking(connect, Some(socket), sync_channel(1).0).unwrap()
}

/// The next host, after its `host.attach` was answered.
fn next_host(listener: &UnixListener) -> BufReader<UnixStream> {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains("host.attach"), "{line}");
    stream.get_mut().write_all(b"{\"id\":1,\"ok\":true,\"result\":{}}\n").unwrap();
    stream
}

fn until_connected(host: &HubHost) {
    until("it is connected", || host.events().iter().any(|event| matches!(event, HubEvent::Connected)));
}

fn method_of(line: &str) -> String {
    let request: Value = serde_json::from_str(line).unwrap();
    request["method"].as_str().unwrap().to_owned()
}

/// Reads and answers until the connection ends. Returns the methods.
fn answer_all(hub: BufReader<UnixStream>) -> Vec<String> {
    let requests = answer_requests(hub);
    requests.iter().map(|request| request["method"].as_str().unwrap().to_owned()).collect()
}

/// Reads and answers until the connection ends. Returns the requests.
fn answer_requests(hub: BufReader<UnixStream>) -> Vec<Value> {
    let (mut writer, mut requests) = (hub.get_ref().try_clone().unwrap(), Vec::new());
    for line in hub.lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap();
        let answer = json!({ "id": request["id"], "ok": true, "result": {} });
        // The peer may be gone.
        let _ = writeln!(writer, "{answer}");
        requests.push(request);
    }
    requests
}

/// Sends so much to a hub that reads nothing that the queue overflows.
fn tell_too_much(host: &mut HubHost) {
    let long = json!({ "title": "x".repeat(1000) });
    while !host.link.is_incomplete.load(Ordering::Relaxed) {
        host.tell("surface.changed", long.clone());
    }
}

#[test]
fn what_a_slow_hub_was_not_told_is_told_anew() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let mut host = start(home, socket);
    let hub = next_host(&listener);
    until_connected(&host);
    tell_too_much(&mut host);
    // Once it reads again, a new connection is made, on which it is sent everything.
    let reading = thread::spawn(move || answer_all(hub));
    let _hub = next_host(&listener);
    until_connected(&host);
    reading.join().unwrap();
    assert!(!host.link.is_incomplete.load(Ordering::Relaxed));
}

#[test]
fn what_a_slow_hub_has_heard_is_not_said_to_it_twice() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let mut host = start(home, socket);
    let mut hub = next_host(&listener);
    until_connected(&host);
    let mut said = String::new();
    // Reports refer to surfaces, and follow them.
    host.tell("surface.heard", json!({ "title": "done" }));
    host.tell("surface.looks", json!({ "present": true }));
    host.tell("surface.opened", json!({}));
    host.tell("surface.looks", json!({}));
    for _ in 0..2 {
        host.tell("surface.heard", json!({ "title": "done" }));
    }
    for _ in 0..6 {
        hub.read_line(&mut said).unwrap();
    }
    let methods = ["opened", "looks", "heard", "heard", "heard"].map(|method| format!("surface.{method}"));
    let found: Vec<String> = said.lines().map(method_of).skip(1).collect();
    assert_eq!(found, methods);
    tell_too_much(&mut host);
    // It answers late, and continues to read.
    for _ in 0..6 {
        writeln!(hub.get_mut(), "{}", json!({ "id": 0, "ok": true, "result": {} })).unwrap();
    }
    let reading = thread::spawn(move || answer_all(hub));
    let again = next_host(&listener);
    until_connected(&host);
    reading.join().unwrap();
    // Kept reports follow the last request of the full state.
    host.tell("surface.looks", json!({}));
    drop(host);
    let methods = answer_all(again);
    assert!(methods.contains(&"surface.looks".to_owned()), "{methods:?}");
    assert!(!methods.contains(&"surface.heard".to_owned()), "{methods:?}");
}

#[test]
fn what_lasts_takes_no_room_of_what_is_said_once() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let mut host = start(home, socket);
    let hub = next_host(&listener);
    until_connected(&host);
    tell_too_much(&mut host);
    host.tell("surface.heard", json!({ "title": "done" }));
    let reading = thread::spawn(move || answer_all(hub));
    let again = next_host(&listener);
    until_connected(&host);
    let before = reading.join().unwrap();
    host.tell("surface.looks", json!({}));
    drop(host);
    let all = [before, answer_all(again)].concat();
    assert_eq!(all.iter().filter(|method| *method == "surface.heard").count(), 1, "{}", all.len());
}

#[test]
fn what_a_hub_has_not_answered_is_kept_for_the_next_server_until_one_does() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let mut host = start(home, socket);
    let report = json!({ "title": "done" });
    let waiting = |host: &HubHost| host.unanswered(Instant::now()).len();
    host.tell("surface.heard", report.clone());
    assert_eq!(waiting(&host), 1, "there is no hub yet");
    let mut hub = next_host(&listener);
    until_connected(&host);
    host.tell("surface.looks", json!({}));
    host.tell("surface.heard", report.clone());
    until("both are late", || waiting(&host) == 2);
    let mut said = String::new();
    while said.matches("surface.heard").count() < 2 {
        hub.read_line(&mut said).unwrap();
    }
    // One is answered, and then the hub is killed.
    for _ in 0..2 {
        writeln!(hub.get_mut(), "{}", json!({ "id": 0, "ok": true, "result": {} })).unwrap();
    }
    until("one is answered", || waiting(&host) == 1);
    drop(hub);
    until("it is lost", || host.events().iter().any(|event| matches!(event, HubEvent::Lost)));
    // As the loop does.
    host.tell("ping", Value::Null);
    let again = next_host(&listener);
    until_connected(&host);
    assert_eq!(waiting(&host), 1);
    let reading = thread::spawn(move || answer_all(again));
    host.tell("surface.looks", json!({}));
    until("the other one is answered, too", || waiting(&host) == 0);
    drop(host);
    let methods = reading.join().unwrap();
    assert_eq!(methods.iter().filter(|method| *method == "surface.heard").count(), 1, "{methods:?}");
}

/// As a server says that takes in what programs wrote while there was none.
#[test]
fn of_more_than_may_wait_the_newest_is_told_in_its_order() {
    let (_directory, home, socket) = home();
    let mut host = start(home, socket.clone());
    let all = MAX_WAITING + 1000;
    for number in 0..all {
        host.tell("surface.heard", json!({ "number": number }));
    }
    let listener = UnixListener::bind(&socket).unwrap();
    let hub = next_host(&listener);
    until_connected(&host);
    host.tell("surface.looks", json!({}));
    drop(host);
    let number = |request: &Value| request["params"]["number"].as_u64();
    let told: Vec<u64> = answer_requests(hub).iter().filter_map(number).collect();
    let newest: Vec<u64> = (1000..all as u64).collect();
    assert!(told == newest, "{} were told, from {:?} to {:?}", told.len(), told.first(), told.last());
}
