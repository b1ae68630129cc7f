//! The socket under pressure: lines without an end, crowds, floods, readers that do not read, strangers.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use ringer_hub::MAX_CONNECTIONS;
use serde_json::{Value, json};
use test_support::{DEADLINE, until};

use crate::hub::TestHub;

fn connect(hub: &TestHub) -> UnixStream {
    let stream = UnixStream::connect(hub.socket()).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// The next line. `None` at the end, however it came.
fn line(reader: &mut BufReader<UnixStream>) -> Option<Value> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) => None,
        Ok(_) => Some(serde_json::from_str(&line).expect("JSON")),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
        Err(error) => panic!("{error}"),
    }
}

/// What this process holds in memory, in bytes; the hub is part of it.
fn held() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn a_line_without_an_end_is_refused_and_costs_no_memory() {
    const PIECE: usize = 64 * 1024;
    let hub = TestHub::start("");
    let before = held();
    let mut stream = connect(&hub);
    let piece = vec![b'x'; PIECE];
    let (mut sent, mut most) = (0_u64, 0);
    while sent < 1 << 30 {
        match stream.write_all(&piece) {
            Ok(()) => sent += piece.len() as u64,
            // It has closed the connection.
            Err(_) => break,
        }
        most = most.max(held());
    }
    assert!(sent < 1 << 30, "it read on for ever");
    let refusal = line(&mut BufReader::new(stream));
    assert!(refusal.is_none_or(|answer| answer["error"]["code"] == "too_long"));
    let grown = most.max(held()).saturating_sub(before);
    assert!(grown < 20 << 20, "{grown} bytes more");
    assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
}

#[test]
fn the_longest_line_is_answered_and_one_more_byte_is_not() {
    let hub = TestHub::start("");
    let ask = |length: usize| {
        let frame = json!({ "id": 1, "method": "ping", "params": { "x": "" } }).to_string();
        let filled = frame.replace("\"x\":\"\"", &format!("\"x\":\"{}\"", "y".repeat(length - frame.len())));
        let mut reader = BufReader::new(connect(&hub));
        // It may have closed the connection before all was written.
        let _ = reader.get_mut().write_all(format!("{filled}\n").as_bytes());
        line(&mut reader)
    };
    assert_eq!(ask(ringer_ipc::MAX_LINE).expect("an answer")["ok"], true);
    assert!(ask(ringer_ipc::MAX_LINE * 2).is_none_or(|answer| answer["error"]["code"] == "too_long"));
}

#[test]
fn so_many_are_served_and_the_others_are_told() {
    let mut hub = TestHub::start("");
    let (mut served, mut told) = (Vec::new(), 0);
    for _ in 0..300 {
        let mut reader = BufReader::new(connect(&hub));
        // One that is refused may be closed already.
        let _ = reader.get_mut().write_all(b"{\"method\":\"surface.list\"}\n");
        match line(&mut reader) {
            Some(answer) if answer["ok"] == true => served.push(reader),
            Some(answer) => {
                assert_eq!(answer["error"]["code"], "busy", "{answer}");
                told += 1;
            }
            None => panic!("a connection got no answer"),
        }
    }
    assert_eq!((served.len(), told), (MAX_CONNECTIONS, 300 - MAX_CONNECTIONS));
    // What a hub is looked at and ended with is answered all the same, once for each connection.
    for _ in 0..100 {
        assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
        assert!(hub.call("hub.status", &Value::Null)["pid"].is_number());
    }
    drop(served.split_off(1));
    until("there is room again", || {
        let mut reader = BufReader::new(connect(&hub));
        let _ = reader.get_mut().write_all(b"{\"method\":\"surface.list\"}\n");
        line(&mut reader).is_some_and(|answer| answer["ok"] == true)
    });
    served.extend((1..MAX_CONNECTIONS).map(|_| BufReader::new(connect(&hub))));
    for reader in &mut served {
        reader.get_mut().write_all(b"{\"method\":\"surface.list\"}\n").expect("it reads");
        assert_eq!(line(reader).expect("an answer")["ok"], true, "one that has spoken keeps its place");
    }
    hub.end();
    assert!(served.iter_mut().all(|reader| line(reader).is_none()), "it has ended");
}

/// Connects so many, of which each sends only this. Those that give way to others stay open on this side.
fn half_open(hub: &TestHub, many: usize, sends: &[u8]) -> Vec<UnixStream> {
    let open = |_| {
        let mut stream = connect(hub);
        // One that has given way already cannot be written to.
        let _ = stream.write_all(sends);
        stream
    };
    (0..many).map(open).collect()
}

#[test]
fn however_many_say_nothing_every_request_is_answered() {
    // So many descriptors are open at once, here and in the hub.
    let limit = rustix::process::Rlimit { current: Some(16_384), maximum: Some(16_384) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    for (many, sends) in [(500, &b""[..]), (2000, b"{\"method\":"), (2000, b"")] {
        let mut hub = TestHub::start("");
        let mut before = BufReader::new(connect(&hub));
        before.get_mut().write_all(b"{\"method\":\"ping\"}\n").expect("it reads");
        assert_eq!(line(&mut before).expect("an answer")["ok"], true);
        let held = half_open(&hub, many, sends);
        for method in ["ping", "hub.status", "surface.list", "notification.list"] {
            hub.call(method, &Value::Null);
        }
        before.get_mut().write_all(b"{\"method\":\"ping\"}\n").expect("it reads");
        assert_eq!(line(&mut before).expect("an answer")["ok"], true, "one that has spoken keeps its place");
        let told = line(&mut BufReader::new(held[0].try_clone().expect("a handle")));
        assert!(told.is_none_or(|answer| answer["error"]["code"] == "busy"), "the oldest gave way");
        hub.end();
        drop(held);
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off_and_no_other_waits() {
    let hub = TestHub::start("");
    let mut slow = BufReader::new(connect(&hub));
    slow.get_mut().write_all(b"{\"method\":\"events.subscribe\"}\n").expect("it reads");
    assert_eq!(line(&mut slow).expect("an answer")["ok"], true);
    let followers = || hub.call("hub.status", &Value::Null)["followers"].as_u64().expect("a number");
    assert_eq!(followers(), 1);
    // Long ones, and more than may wait: the socket fills up, then the queue behind it.
    let text = "x".repeat(2000);
    let mut number = 0;
    until("it is cut off", || {
        for _ in 0..200 {
            number += 1;
            let toast = json!({ "key": "k", "priority": "immediate", "text": format!("{number} {text}") });
            hub.call("toast.add", &toast);
        }
        followers() == 0
    });
    let mut got = 0;
    while line(&mut slow).is_some() {
        got += 1;
    }
    assert!(got < number, "{got} of {number}: the connection ended before the last");
}

#[test]
fn a_flood_is_limited_for_the_client_that_makes_it() {
    const FLOOD: usize = 5000;
    let hub = TestHub::start("");
    let begun = Instant::now();
    let flood = connect(&hub);
    let mut out = flood.try_clone().expect("a second handle");
    let writer = thread::spawn(move || {
        let lines = "{\"id\":1,\"method\":\"ping\"}\n".repeat(FLOOD);
        out.write_all(lines.as_bytes()).expect("it reads");
    });
    let mut reader = BufReader::new(flood);
    let (mut allowed, mut limited) = (0_u32, 0_u32);
    for _ in 0..FLOOD {
        let answer = line(&mut reader).expect("an answer to each");
        if answer["ok"] == true {
            allowed += 1;
        } else {
            assert_eq!(answer["error"]["code"], "rate_limited", "{answer}");
            limited += 1;
            // Another one meanwhile is not concerned.
            if limited == 1 {
                assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
            }
        }
    }
    writer.join().expect("it wrote");
    // A burst of 1000, then 500 every second. A slower machine does not reach that limit.
    let most = 1001.0 + 500.0 * begun.elapsed().as_secs_f64();
    assert!(allowed >= 1000 && f64::from(allowed) <= most, "{allowed} allowed, {limited} limited");
}

#[test]
fn half_a_line_holds_up_no_other_client() {
    let hub = TestHub::start("");
    let mut held: Vec<UnixStream> = (0..50).map(|_| connect(&hub)).collect();
    for stream in &mut held {
        stream.write_all(b"{\"method\":").expect("it reads");
    }
    assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
    for stream in &mut held {
        stream.write_all(b"\"ping\"}\n").expect("it still reads");
    }
    for stream in held {
        assert_eq!(line(&mut BufReader::new(stream)).expect("an answer")["ok"], true);
    }
}

/// Only Linux lets one thread run as another user.
#[test]
#[cfg(target_os = "linux")]
fn strangers_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    if !test_support::is_root() {
        return;
    }
    let hub = TestHub::start("");
    let socket = hub.socket();
    let directories: Vec<_> = socket
        .ancestors()
        .take_while(|path| **path != std::env::temp_dir())
        .map(std::path::Path::to_owned)
        .collect();
    let allow = |mode| {
        for path in &directories {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
        }
    };
    // Even where the file system would let them in.
    allow(0o777);
    let refused = thread::spawn(move || {
        // Of this thread only.
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(65534)).expect("root may");
        let stream = UnixStream::connect(socket).expect("the way is open");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        line(&mut BufReader::new(stream))
    });
    let answer = refused.join().expect("it asked").expect("an answer");
    assert_eq!(answer["error"]["code"], "no_permission", "{answer}");
    // A client of ours does not go there either while others can.
    allow(0o700);
    assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
}

/// As the fault was found: the directory above the socket is another user's, who puts a hub of their own there.
#[test]
#[cfg(target_os = "linux")]
fn a_strangers_hub_is_not_believed() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::net::UnixListener;

    use ringer_ipc::{HubAddress, HubClient, HubClientError};
    use ringer_journal::{Home, HubLock};
    if !test_support::is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).expect("ours");
    let home = Home::new(directory.path().join("home"));
    let above = directory.path().join("ringer-0");
    let socket = above.join("0a0a0a0a/hub.sock");
    fs::create_dir_all(socket.parent().expect("a directory")).expect("a directory");
    let running = HubLock::acquire(&home).expect("a home").expect("no hub");
    let address = HubAddress { socket: socket.clone(), pid: std::process::id(), version: "1".to_owned() };
    let text = serde_json::to_string(&address).expect("JSON");
    fs::write(home.path().join("hub.json"), text).expect("a file");
    let theirs = |yes: bool| {
        let uid = Some(if yes { 65534 } else { 0 });
        chown(&above, uid, None).and_then(|()| chown(socket.parent().expect("a directory"), uid, None))
    };
    theirs(true).expect("root may");
    let (heard, requests) = std::sync::mpsc::channel();
    let path = socket.clone();
    let (listens, ready) = std::sync::mpsc::channel();
    thread::spawn(move || {
        // Of this thread only.
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(65534)).expect("root may");
        let listener = UnixListener::bind(path).expect("theirs");
        listens.send(()).expect("the test waits");
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let asked = line(&mut reader);
            if asked.is_some() {
                let _ =
                    reader.get_mut().write_all(b"{\"id\":1,\"ok\":true,\"result\":{\"pong\":\"forged\"}}\n");
            }
            let _ = heard.send(asked);
        }
    });
    ready.recv_timeout(DEADLINE).expect("it listens");
    let ask = || HubClient::connect(&home).and_then(|mut client| client.call("ping", &Value::Null));
    let error = ask().expect_err("the path is theirs");
    assert!(matches!(error, HubClientError::UnsafePath(_)), "{error}");
    // Even if the path were right.
    theirs(false).and_then(|()| chown(&socket, Some(0), None)).expect("root may");
    let error = ask().expect_err("the process is theirs");
    assert!(matches!(error, HubClientError::UnsafePath(_)), "{error}");
    assert!(ringer_ipc::tell(&home, "ping", &Value::Null).is_err());
    for _ in 0..2 {
        assert_eq!(
            requests.recv_timeout(DEADLINE).expect("it was connected to"),
            None,
            "it was asked nothing"
        );
    }
    drop(running);
    let error = ask().expect_err("it is theirs");
    assert!(matches!(error, HubClientError::NoHub), "without a hub of ours, another one may start: {error}");
}

/// The journal's log is copied into the database when much was written, not when much was asked.
#[test]
fn requests_alone_do_not_touch_the_database() {
    let hub = TestHub::start("");
    let id = hub.send("hello");
    hub.wait_for_step(&id, "channels: ");
    let database = || fs::read(hub.home().database()).expect("a database");
    let before = database();
    for _ in 0..100 {
        hub.call("notification.list", &Value::Null);
    }
    assert!(database() == before, "the log was copied into it");
    let rings: Vec<_> = (0..20).map(|number| hub.send(&number.to_string())).collect();
    hub.wait_for_step(rings.last().expect("one"), "channels: ");
    until("the log is copied into it", || {
        hub.call("ping", &Value::Null);
        database() != before
    });
}

#[test]
fn the_status_says_how_many_need_the_person_however_many_are_listed() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\nrate_limit = \"off\"\n");
    for (body, kind) in [("one", "error"), ("two", "error"), ("three", "status")] {
        hub.call("notification.create", &json!({ "body": body, "kind": kind }));
    }
    let status = hub.call("hub.status", &Value::Null);
    assert_eq!((&status["unread"], &status["needs_you"]), (&json!(3), &json!(2)), "{status}");
}
