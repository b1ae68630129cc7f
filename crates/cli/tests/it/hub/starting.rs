//! How a hub comes and goes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::{DEADLINE, until};

use super::environment::{HubEnvironment, kill, runs};
use crate::background::Background;
use crate::ringer::check;

/// A field of `/proc/PID/stat`, counted as in proc(5).
fn stat(pid: u32, field: usize) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    rest.split(' ').nth(field - 3).expect("a field").to_owned()
}

#[test]
fn a_message_without_a_hub_starts_exactly_one() {
    let environment = HubEnvironment::new();
    thread::scope(|threads| {
        for number in 0..8 {
            let environment = &environment;
            threads.spawn(move || environment.run(&["notify", &format!("number {number}")]));
        }
    });
    let pid = environment.settled_hub();
    let mut bodies = environment.bodies(&[]);
    bodies.sort();
    let expected: Vec<String> = (0..8).map(|number| format!("number {number}")).collect();
    assert_eq!(bodies, expected, "all of them reached the one");
    environment.notify(&["one more"]);
    assert_eq!((environment.hubs(), environment.hub()), (vec![pid], pid), "and it stays the one");
}

#[test]
fn commands_at_the_same_moment_all_reach_the_one_hub() {
    let environment = HubEnvironment::new();
    thread::scope(|threads| {
        for _ in 0..6 {
            threads.spawn(|| assert_eq!(environment.run(&["list"]), "No notifications.\n"));
        }
    });
    environment.settled_hub();
}

#[test]
fn it_takes_nothing_of_its_first_caller_along() {
    let environment = HubEnvironment::new();
    let mut shell = environment.program("sh");
    // The pipe at 7 ends when no process has it open: not the shell, not notify, and not the hub.
    shell.args(["-c", "exec 7>&1; $RINGER notify hello >/dev/null"]);
    shell.env("SECRET_TOKEN", "hunter2").env("TERM", "xterm-kitty").stdout(Stdio::piped());
    shell.env("HTTPS_PROXY", "http://me:hunter2@proxy.example:3128");
    let mut child = shell.spawn().expect("a shell");
    let mut pipe = child.stdout.take().expect("piped");
    assert!(child.wait().expect("it ends").success());
    let (ended, end) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = ended.send(pipe.read_to_end(&mut rest).map(|_| rest));
    });
    let rest = end.recv_timeout(DEADLINE).expect("the hub holds no pipe of its caller");
    assert_eq!(rest.expect("an end"), b"");

    let pid = environment.settled_hub();
    let environment = fs::read(format!("/proc/{pid}/environ")).expect("ours");
    let environment = String::from_utf8_lossy(&environment);
    assert!(!environment.contains("hunter2") && !environment.contains("TERM="), "{environment}");
    assert!(environment.contains("RINGER_HOME=") && environment.contains("PATH="), "{environment}");
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).expect("a directory"), std::path::Path::new("/"));
    assert_eq!(
        (stat(pid, 6), stat(pid, 7)),
        (pid.to_string(), "0".to_owned()),
        "its own session, no terminal"
    );
    for fd in 0..3 {
        let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).expect("it is open");
        assert_eq!(target, std::path::Path::new("/dev/null"), "{fd}");
    }
}

#[test]
fn a_webhook_goes_through_the_proxy_of_its_first_caller() {
    let webhook = "[[webhook]]\nkind = \"json\"\nurl = \"http://hooks.invalid/x\"\n";
    let environment = HubEnvironment::with_settings(&format!("[notify]\npopup = \"off\"\n{webhook}"));
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", proxy.local_addr().expect("an address"));
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let (stream, _) = proxy.accept().expect("a call");
        BufReader::new(stream).read_line(&mut line).expect("a line");
        let _ = tell.send(line);
    });
    check(environment.ringer(&["notify", "hello"]).env("http_proxy", address), 0);
    let line = told.recv_timeout(DEADLINE).expect("the proxy is called");
    assert!(line.contains("hooks.invalid"), "{line}");
}

#[test]
fn what_a_killed_hub_left_behind_is_taken_over() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let first = environment.hub();
    let socket = environment.presence().expect("a file")["socket"].clone();
    kill(first);
    assert!(fs::exists(socket.as_str().expect("a path")).expect("a look"), "the socket is stale");
    assert_eq!(environment.presence().expect("a stale file")["pid"], first);
    // A program that it was about to start has its lock until it begins.
    let ended = "the hub is not running; the next message starts it\n";
    until("its lock is free", || environment.run(&["hub", "status"]) == ended);

    environment.notify(&["after the crash"]);
    let second = environment.settled_hub();
    assert_ne!(first, second);
    assert_eq!(environment.bodies(&[]), ["after the crash"]);
    assert_eq!(environment.presence().expect("a file")["socket"], socket, "at the same place");
}

#[test]
fn it_is_started_stopped_and_asked_how_it_is() {
    let environment = HubEnvironment::new();
    assert_eq!(environment.run(&["hub", "status"]), "the hub is not running; the next message starts it\n");
    assert_eq!(environment.json(&["hub", "status", "--json"])["running"], false);
    assert_eq!(environment.run(&["hub", "stop"]), "the hub is not running\n");
    assert_eq!(environment.run(&["hub", "start"]), "the hub is running\n");
    assert_eq!(environment.run(&["hub", "start"]), "the hub is already running\n");
    environment.notify(&["hello"]);
    let pid = environment.hub();
    let status = environment.json(&["hub", "status", "--json"]);
    assert_eq!((&status["unread"], &status["undecided"]), (&1.into(), &0.into()), "{status}");
    assert_eq!(status["home"], environment.base.home().to_str().expect("a path"));
    let said = environment.run(&["hub", "status"]);
    assert!(
        said.starts_with(&format!("the hub is running: pid {pid}, version ")) && said.contains("1 unread"),
        "{said}"
    );

    assert_eq!(environment.run(&["hub", "stop"]), "the hub has stopped\n");
    until("it is gone", || !runs(pid));
    assert!(environment.presence().is_none(), "it took its file away");
    assert_eq!(
        environment.run(&["hub", "start"]),
        "the hub is running\n",
        "and the next one can begin at once"
    );
    assert_eq!(environment.bodies(&["--unread"]), ["hello"], "with what the last one remembered");
}

#[test]
fn in_the_foreground_it_tells_its_log_and_ends_when_it_is_told() {
    let environment = HubEnvironment::new();
    let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
    command.args(["hub", "start", "--foreground"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    until("it answers", || environment.json(&["hub", "status", "--json"])["running"] == true);
    // A second one says who is there, and goes.
    let (_, complaint) = check(&mut environment.ringer(&["hub", "start", "--foreground"]), 75);
    assert!(complaint.contains(&format!("the hub is already running (pid {})", child.id())), "{complaint}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("its log");
    assert!(child.wait().expect("it ends").success());
    assert!(said.contains("begins, pid") && said.contains("the hub ends"), "{said}");
    assert_eq!(said, environment.log());
}

#[test]
fn it_ends_when_it_has_nothing_to_do_and_no_client_is_connected() {
    let environment = HubEnvironment::new();
    let mut socket = None;
    // On a busy machine one may have ended before it is asked. Then another one is started.
    until("a hub that has a client", || {
        let mut start = environment.ringer(&["hub", "start"]);
        start.env("RINGER_HUB_IDLE_MS", "200").output().expect("it runs");
        socket = environment.try_connect().and_then(|mut socket| socket.is_answered().then_some(socket));
        socket.is_some()
    });
    let pid = environment.hub();
    let ends = || environment.log().matches("nothing to do for a while").count();
    let ended_before = ends();
    // Longer than it would stay alone.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(600) {
        environment.run(&["list", "--all"]);
    }
    assert!(runs(pid), "a client is connected");
    drop(socket);
    until("it ends", || !runs(pid));
    assert_eq!(ends(), ended_before + 1, "{}", environment.log());
    assert!(environment.presence().is_none());
}

#[test]
fn no_command_starts_one_where_that_is_forbidden() {
    let environment = HubEnvironment::new();
    let off = |arguments: &[&str], exit| check(environment.ringer(arguments).env("RINGER_HUB", "off"), exit);
    off(&["notify", "hello"], 0);
    off(&["list"], 0);
    off(&["read", "--all"], 0);
    for arguments in [&["watch"][..], &["toast", "hello"], &["jump"], &["observe", "settings", "x"]] {
        let (_, complaint) = off(arguments, 69);
        assert!(complaint.contains("RINGER_HUB=off prevents starting it"), "{arguments:?}: {complaint}");
    }
    assert!(environment.hubs().is_empty() && environment.presence().is_none());
    let hub = Background::start({
        let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
        command.env("RINGER_HUB", "off").args(["hub", "start", "--foreground"]).stderr(Stdio::null());
        command
    });
    until("one that was asked for by name runs", || {
        environment.json(&["hub", "status", "--json"])["running"] == true
    });
    assert_eq!(environment.hubs(), [hub.pid()]);
}
