//! A hub that is slow.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use ringer_ipc::discovery::{HubAddress, socket_path};
use ringer_journal::Home;
use test_support::until;

use super::*;

/// A home, and where its hub listens.
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

/// The next host, which was told that it is one.
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

#[test]
fn what_a_slow_hub_was_not_told_is_told_anew() {
    let (_directory, home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    let host = start(home, socket);
    let hub = next_host(&listener);
    until_connected(&host);
    let long = json!({ "title": "x".repeat(1000) });
    while !host.link.is_incomplete.load(Ordering::Relaxed) {
        host.tell("surface.changed", long.clone());
    }
    // It reads on, and is connected to again: that is how it is told everything.
    let reading = thread::spawn(move || hub.lines().map_while(Result::ok).for_each(drop));
    let _hub = next_host(&listener);
    until_connected(&host);
    reading.join().unwrap();
    assert!(!host.link.is_incomplete.load(Ordering::Relaxed));
}
