//! A hub that is stopped, or takes nothing: the hooks of agents do not wait for it, and commands not for ever.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ringer_journal::{Home, HubLock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use test_support::{DEADLINE, until};

use super::environment::HubEnvironment;
use crate::ringer::{check, check_with_input};

/// A limit that ended a turn: the hook tells the hub of it, besides the journal.
fn hook(mut ringer: Command) {
    let input = json!({
        "session_id": "aaaaaaaa", "hook_event_name": "StopFailure", "error": "rate_limit",
        "last_assistant_message": "try again at noon",
    });
    check_with_input(ringer.args(["hook", "claude", "StopFailure"]), input.to_string().as_bytes());
}

/// Another model: the status line tells the hub of it.
fn statusline(environment: &HubEnvironment, model: &str) {
    let status = json!({"session_id": "aaaaaaaa", "model": {"display_name": model}});
    check_with_input(&mut environment.ringer(&["statusline", "claude"]), status.to_string().as_bytes());
}

fn begin_session(mut ringer: Command) {
    let begins = json!({"session_id": "aaaaaaaa", "hook_event_name": "SessionStart", "source": "startup"});
    check_with_input(ringer.args(["hook", "claude", "SessionStart"]), begins.to_string().as_bytes());
}

/// The binary, which starts no hub: that one would take its place again.
fn alone(environment: &HubEnvironment) -> Command {
    environment.base.ringer::<&str>(&[])
}

/// Puts a socket of the test's own in the place of the hub's.
fn pretend(environment: &HubEnvironment) -> std::path::PathBuf {
    let socket = environment.base.home().join("pretended.sock");
    let presence = json!({ "socket": socket, "pid": std::process::id(), "version": "0" });
    fs::write(environment.base.home().join("hub.json"), presence.to_string()).expect("a file");
    socket
}

pub(super) fn signal(hub: u32, signal: Signal) {
    kill_process(Pid::from_raw(hub.cast_signed()).expect("a pid"), signal).expect("it runs");
}

fn is_stopped(hub: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{hub}/stat")).expect("it runs");
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Stops a hub, and waits until it stands still.
pub(super) fn stop(hub: u32) {
    signal(hub, Signal::STOP);
    until("it is stopped", || is_stopped(hub));
}

#[test]
fn hooks_end_while_the_hub_is_stopped_and_it_hears_of_them_later() {
    let environment = HubEnvironment::new();
    begin_session(environment.ringer::<&str>(&[]));
    let hub = environment.settled_hub();
    statusline(&environment, "Opus");
    stop(hub);
    statusline(&environment, "Haiku");
    hook(environment.ringer::<&str>(&[]));
    assert!(is_stopped(hub), "they ended while it was stopped");
    signal(hub, Signal::CONT);
    // The first is the more important one, and hides the other.
    for (text, key) in [("try again at noon", "limit-reached"), ("from Opus to Haiku", "model-migration")] {
        until(text, || {
            let status = environment.json(&["hub", "status", "--json"]);
            status["toast"].as_str().is_some_and(|toast| toast.contains(text))
        });
        environment.run(&["toast", "--remove", key]);
    }
}

#[test]
fn hooks_do_not_wait_for_an_answer_that_never_ends() {
    let environment = HubEnvironment::new();
    begin_session(alone(&environment));
    let listener = UnixListener::bind(pretend(&environment)).expect("a socket");
    let (tell, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut line = vec![0; 65536];
            let read = (&stream).read(&mut line).unwrap_or_default();
            let _ = tell.send(String::from_utf8_lossy(&line[..read]).into_owned());
            // Longer than any single read waits for, and for as long as the other side is there.
            thread::spawn(move || trickle(&stream));
        }
    });
    hook(alone(&environment));
    let request = heard.recv_timeout(DEADLINE).expect("it was told");
    assert!(request.contains("try again at noon") && request.ends_with('\n'), "{request}");
}

fn trickle(mut stream: &UnixStream) {
    while stream.write_all(b" ").is_ok() {
        thread::park_timeout(Duration::from_millis(100));
    }
}

#[test]
fn hooks_do_not_wait_for_a_hub_that_takes_no_connection() {
    let environment = HubEnvironment::new();
    begin_session(alone(&environment));
    let socket = pretend(&environment);
    let address = SocketAddrUnix::new(&socket).expect("an address");
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&listener, &address).expect("a place");
    rustix::net::listen(&listener, 0).expect("it listens");
    // The only one that may wait to be taken.
    let waiting = UnixStream::connect(&socket).expect("there is room for one");
    hook(alone(&environment));
    drop(waiting);
}

#[test]
fn commands_that_need_a_stopped_hub_end_and_name_its_process() {
    let environment = HubEnvironment::new();
    let id = environment.notify(&["before"]);
    let hub = environment.settled_hub();
    stop(hub);
    let commands: [&[&str]; 4] = [&["list"], &["why", &id], &["hub", "status"], &["hub", "stop"]];
    // Side by side, because each waits as long as it may.
    thread::scope(|scope| {
        for arguments in commands {
            let environment = &environment;
            scope.spawn(move || {
                let (out, err) = check(&mut environment.ringer(arguments), 75);
                let is_named =
                    err.contains("the hub took longer than 5 s") && err.contains(&format!("kill -9 {hub} "));
                assert!(out.is_empty() && is_named, "{arguments:?}: {out}{err}");
            });
        }
    });
    // Sending needs no hub, and reading does not either: its mark waits in the journal.
    environment.notify(&["meanwhile"]);
    environment.run(&["read", &id]);
    assert!(is_stopped(hub), "they ended while it was stopped");
    signal(hub, Signal::CONT);
    assert_eq!(environment.bodies(&[]), ["meanwhile", "before"]);
    assert_eq!(environment.bodies(&["--unread"]), ["meanwhile"]);
}

/// It says that it ends, closes the connection, and goes on.
#[test]
fn a_hub_that_does_not_end_is_not_said_to_have_ended() {
    let environment = HubEnvironment::new();
    environment.run(&["status"]);
    let running = HubLock::acquire(&Home::new(environment.base.home())).expect("a home").expect("no hub");
    let listener = UnixListener::bind(pretend(&environment)).expect("a socket");
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a command");
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut String::new()).expect("a request");
        reader
            .get_mut()
            .write_all(b"{\"id\":1,\"ok\":true,\"result\":{\"stopping\":true}}\n")
            .expect("it reads");
    });
    let (out, err) = check(alone(&environment).args(["hub", "stop"]), 75);
    let pid = std::process::id();
    assert!(out.is_empty() && err.contains(&format!("did not stop in time (pid {pid})")), "{out}{err}");
    drop(running);
}

/// A writer that was stopped holds the lock: what changes something is to be tried again, and everything else is answered.
#[test]
fn commands_say_try_again_while_the_write_lock_is_held_and_the_hub_goes_on() {
    let environment = HubEnvironment::new();
    environment.notify(&["before"]);
    environment.settled_hub();
    until("it is listed", || environment.bodies(&["--unread"]) == ["before"]);
    let lock = fs::OpenOptions::new().append(true).open(environment.base.home().join("write.lock"));
    let lock = lock.expect("a lock");
    lock.lock().expect("it comes free");
    let complaint = environment.fails(&["read", "--all"], 75);
    assert!(complaint.contains("write lock") && complaint.contains("try again"), "{complaint}");
    assert_eq!(environment.bodies(&["--unread"]), ["before"]);
    assert_eq!(environment.json(&["hub", "status", "--json"])["unread"], 1);
    drop(lock);
    environment.run(&["read", "--all"]);
    assert_eq!(environment.bodies(&["--unread"]), Vec::<String>::new());
}
