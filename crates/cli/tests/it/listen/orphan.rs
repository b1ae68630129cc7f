//! A listener whose parent ends must not swallow what the next one should read.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::background::Background;
use crate::half_printed::HalfPrinted;
use crate::home::{TestEnvironment, is_listening, texts};

/// A session that listens in the background, as a lead agent does, and the number of its listener.
fn session(environment: &TestEnvironment, options: &str) -> (Background, u32) {
    session_after(environment, "", options)
}

/// The same for a shell that does something else first.
fn session_after(environment: &TestEnvironment, first: &str, options: &str) -> (Background, u32) {
    let mut shell = environment.program("sh");
    shell.args(["-c", &format!("{first} \"$RINGER\" listen {options} & echo $!; wait")]);
    let session = Background::start(shell);
    let listener = session.line().expect("a number").parse().expect("a number");
    (session, listener)
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a number");
    kill_process(pid, signal).expect("it runs");
}

/// Whether a process holds a descriptor that tells the end of another one.
fn watches_a_process(pid: u32) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let targets = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.into_iter().any(|target| target.to_string_lossy().contains("pidfd"))
}

#[test]
fn it_exits_without_output_and_the_next_one_gets_the_message() {
    let environment = TestEnvironment::new();
    let (mut session, listener) = session(&environment, "");
    environment.wait_until_asleep(listener);
    session.kill();
    assert_eq!(session.line(), None, "its output has ended, so it has");
    environment.wait_until_gone(listener);
    environment.notify("hello");
    assert_eq!(environment.texts(), ["hello"]);
}

#[test]
fn a_ring_that_came_before_it_noticed_changes_nothing() {
    let environment = TestEnvironment::new();
    let (mut session, listener) = session(&environment, "");
    environment.wait_until_asleep(listener);
    signal(listener, Signal::STOP);
    environment.notify("hello");
    session.kill();
    signal(listener, Signal::CONT);
    assert_eq!(session.line(), None);
    assert_eq!(environment.texts(), ["hello"]);
}

#[test]
fn it_does_not_read_either_when_it_waited_for_another_listener() {
    let environment = TestEnvironment::new();
    let first = HalfPrinted::begin(&environment);
    let (mut session, listener) = session(&environment, "");
    environment.wait_until("it watches its parent", |status| {
        is_listening(status, listener) && watches_a_process(listener)
    });
    session.kill();
    first.kill();
    assert!(session.line().is_none(), "it printed the first one's batch, and its own session has ended");
    assert!(environment.texts() == [HalfPrinted::text()]);
}

/// What `nohup` asks for is kept, and only that: a hangup does not end the listener, the end of its session does.
#[test]
fn under_nohup_a_hangup_does_not_end_it_but_the_end_of_its_session_does() {
    let environment = TestEnvironment::new();
    let (session, listener) = session_after(&environment, "trap '' HUP;", "");
    environment.wait_until_asleep(listener);
    signal(listener, Signal::HUP);
    environment.notify("hello");
    assert_eq!(texts(&[session.message()]), ["hello"]);
    assert_eq!(session.line(), None);

    let (mut session, listener) = session_after(&environment, "trap '' HUP;", "");
    environment.wait_until_asleep(listener);
    signal(listener, Signal::HUP);
    session.kill();
    assert_eq!(session.line(), None, "its output has ended, so it has");
    environment.wait_until_gone(listener);
    environment.notify("again");
    assert_eq!(environment.texts(), ["again"]);
}

#[test]
fn follow_goes_on() {
    let environment = TestEnvironment::new();
    let (mut session, listener) = session(&environment, "--follow");
    environment.wait_until_asleep(listener);
    session.kill();
    environment.notify("hello");
    assert_eq!(texts(&[session.message()]), ["hello"]);
    signal(listener, Signal::KILL);
    assert_eq!(session.line(), None);
}
