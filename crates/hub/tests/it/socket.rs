//! The socket under pressure: lines without an end, crowds, floods, readers that do not read, strangers.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use ringer_hub::MAX_CONNECTIONS;
use serde_json::{Value, json};

use crate::hub::{PATIENCE, TestHub, until};

fn connect(hub: &TestHub) -> UnixStream {
    let stream = UnixStream::connect(hub.socket()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
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
    assert_eq!(ask(ringer_hub::MAX_LINE).expect("an answer")["ok"], true);
    assert!(ask(ringer_hub::MAX_LINE * 2).is_none_or(|answer| answer["error"]["code"] == "too_long"));
}

#[test]
fn so_many_are_served_and_the_others_are_told() {
    let hub = TestHub::start("");
    let (mut served, mut told) = (Vec::new(), 0);
    for _ in 0..300 {
        let mut reader = BufReader::new(connect(&hub));
        // One that is refused may be closed already.
        let _ = reader.get_mut().write_all(b"{\"method\":\"ping\"}\n");
        match line(&mut reader) {
            Some(answer) if answer["ok"] == true => served.push(reader),
            Some(answer) => {
                assert_eq!(answer["error"]["code"], "busy", "{answer}");
                told += 1;
            }
            None => panic!("somebody was told nothing"),
        }
    }
    assert_eq!((served.len(), told), (MAX_CONNECTIONS, 300 - MAX_CONNECTIONS));
    drop(served);
    until("there is room again", || {
        let mut reader = BufReader::new(connect(&hub));
        let _ = reader.get_mut().write_all(b"{\"method\":\"ping\"}\n");
        line(&mut reader).is_some_and(|answer| answer["ok"] == true)
    });
}

#[test]
fn who_does_not_read_is_cut_off_and_nobody_waits() {
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
fn a_flood_is_limited_for_whoever_makes_it() {
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
    // A burst, and so many every second; a machine that is slower than that limits nobody.
    let most = 1001.0 + 500.0 * begun.elapsed().as_secs_f64();
    assert!(allowed >= 1000 && f64::from(allowed) <= most, "{allowed} allowed, {limited} limited");
}

#[test]
fn half_a_line_holds_up_nobody() {
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

/// Only Linux lets one thread be somebody else.
#[test]
#[cfg(target_os = "linux")]
fn strangers_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    if !test_support::is_root() {
        return;
    }
    let hub = TestHub::start("");
    let socket = hub.socket();
    // Even where the file system would let them in.
    for path in socket.ancestors().take_while(|path| **path != std::env::temp_dir()) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("ours");
    }
    let refused = thread::spawn(move || {
        // Of this thread only.
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(65534)).expect("root may");
        let stream = UnixStream::connect(socket).expect("the way is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        line(&mut BufReader::new(stream))
    });
    let answer = refused.join().expect("it asked").expect("an answer");
    assert_eq!(answer["error"]["code"], "no_permission", "{answer}");
    assert_eq!(hub.call("ping", &Value::Null)["pong"], true);
}

/// The journal's log is copied into the database when much was written, not when much was asked.
#[test]
fn requests_alone_do_not_touch_the_database() {
    let hub = TestHub::start("");
    let id = hub.send("hello");
    hub.wait_for_step(&id, "decided: ");
    let database = || fs::read(hub.home().database()).expect("a database");
    let before = database();
    for _ in 0..100 {
        hub.call("notification.list", &Value::Null);
    }
    assert!(database() == before, "the log was copied into it");
    let rings: Vec<_> = (0..20).map(|number| hub.send(&number.to_string())).collect();
    hub.wait_for_step(rings.last().expect("one"), "decided: ");
    until("the log is copied into it", || {
        hub.call("ping", &Value::Null);
        database() != before
    });
}
