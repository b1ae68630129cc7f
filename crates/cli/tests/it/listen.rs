//! `ringer listen`: who gets what, and when it ends.

mod orphan;
pub(crate) mod repository;

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::background::Background;
use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::check;

#[test]
fn a_timeout_ends_it_without_output() {
    let environment = TestEnvironment::new();
    for (timeout, least) in [("0", 0), ("0.25", 250), ("250ms", 250), ("0.05s", 50)] {
        let start = Instant::now();
        let (out, err) = check(&mut environment.ringer(&["listen", "--timeout", timeout]), 0);
        assert_eq!((out.as_str(), err.as_str()), ("", ""));
        assert!(start.elapsed() >= Duration::from_millis(least), "{timeout} was over too soon");
    }
    for wrong in ["-1", "soon", "1x", ""] {
        check(&mut environment.ringer(&["listen", &format!("--timeout={wrong}")]), 64);
    }
}

#[test]
fn without_a_timeout_it_waits_until_something_comes() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&[]);
    environment.notify("hello");
    assert_eq!(texts(&listener.messages()), ["hello"]);
}

/// A machine that was suspended: time has passed and messages have come while the listener stood still.
#[test]
fn what_came_while_it_stood_still_is_there_also_after_its_time() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&["--timeout", "6"]);
    listener.stop();
    environment.notify("in the meantime");
    // The second listener's timeout passes, and with it that of the first.
    let (out, _) =
        check(&mut environment.ringer(&["listen", "--as", "other", "--from-now", "--timeout", "6.2"]), 0);
    assert_eq!(out, "");
    listener.signal(Signal::CONT);
    assert_eq!(texts(&listener.messages()), ["in the meantime"]);
}

#[test]
fn follow_goes_on_after_the_first_messages() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let mut listener = environment.listen(&["--follow"]);
    assert_eq!(listener.message()["msg"], "before");
    for text in ["one", "two", "three"] {
        environment.notify(text);
        assert_eq!(listener.message()["msg"], text);
    }
    listener.kill();
    assert_eq!(listener.line(), None);
}

#[test]
fn follow_ends_at_its_timeout() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let listener = Background::start(environment.ringer(&["listen", "--follow", "--timeout", "0.3"]));
    assert_eq!(texts(&listener.messages()), ["hello"]);
}

#[test]
fn two_names_each_get_everything() {
    let environment = TestEnvironment::new();
    let (lead, other) = (environment.listen(&[]), environment.listen(&["--as", "dashboard"]));
    environment.notify("hello");
    assert_eq!(texts(&lead.messages()), ["hello"]);
    assert_eq!(texts(&other.messages()), ["hello"]);
}

#[test]
fn a_name_that_is_no_file_name_is_refused() {
    let environment = TestEnvironment::new();
    for wrong in ["", "../lead", "a b", ".", "a\nb", &"x".repeat(65)] {
        let (out, err) = check(&mut environment.ringer(&["listen", "--timeout", "0", "--as", wrong]), 64);
        assert!(out.is_empty() && err.contains("hint: ringer listen --as"), "{wrong:?}: {err}");
    }
}

#[test]
fn a_new_name_gets_what_was_sent_before_it_ever_listened() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    assert_eq!(environment.texts(), ["one"]);
    environment.notify("two");
    let late = environment.run(&["listen", "--timeout", "0", "--as", "late"]);
    assert_eq!(texts(&lines(&late)), ["one", "two"]);
}

#[test]
fn from_now_skips_what_was_sent_before() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let listener = environment.listen(&["--from-now"]);
    environment.notify("after");
    assert_eq!(texts(&listener.messages()), ["after"]);
    environment.notify("skipped too");
    assert_eq!(environment.run(&["listen", "--timeout", "0", "--from-now"]), "");
    assert!(environment.drain().is_empty());
}

/// How often a process went to sleep of its own will.
fn naps(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
    line.expect("Linux counts them").to_owned()
}

#[test]
fn no_listener_is_woken_by_its_own_message_or_given_it() {
    let environment = TestEnvironment::new();
    let mut listen = environment.ringer(&["listen"]);
    listen.env("RINGER_AGENT", "lead-1");
    let listener = environment.start(listen);
    let before = naps(listener.pid());
    environment.run(&["notify", "--from", "lead-1", "by option"]);
    check(environment.ringer(&["notify", "by environment"]).env("RINGER_AGENT", "lead-1"), 0);
    assert_eq!(naps(listener.pid()), before, "it slept on");
    environment.run(&["notify", "--from", "worker-1", "of another"]);
    assert_eq!(texts(&listener.messages()), ["of another"]);
    // It was for the lead, all the same: another session that leads gets it.
    environment.run(&["notify", "--from", "lead-1", "again"]);
    assert_eq!(environment.texts(), ["again"]);
}

#[test]
fn what_is_for_others_wakes_no_listener_and_is_not_printed() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&[]);
    let before = naps(listener.pid());
    for to in ["person", "worker-1", "agent:worker-2"] {
        environment.run(&["notify", "--to", to, "not for the lead"]);
    }
    assert_eq!(naps(listener.pid()), before, "it slept on");
    environment.run(&["notify", "--to", "lead", "for the lead"]);
    assert_eq!(texts(&listener.messages()), ["for the lead"]);
    environment.run(&["notify", "--to", "all", "for all"]);
    assert_eq!(environment.texts(), ["for all"]);
}

#[test]
fn at_least_one_line_is_printed_however_long() {
    let environment = TestEnvironment::new();
    let long = "x".repeat(64 * 1024);
    environment.notify(&long);
    environment.notify("short");
    assert!(environment.texts() == [long]);
    assert_eq!(environment.texts(), ["short"]);
}

#[test]
fn a_hundred_lines_at_once_unless_told_otherwise() {
    let environment = TestEnvironment::in_memory();
    for number in 0..103 {
        environment.notify(&number.to_string());
    }
    assert_eq!(environment.drain().len(), 100);
    assert_eq!(environment.texts(), ["100", "101", "102"]);
    let all = environment.run(&["listen", "--timeout", "0", "--as", "other", "--max", "1000"]);
    let count = lines(&all).len();
    assert!(count == 103 || all.trim_end().chars().count() > 29_000, "{count}");
    check(&mut environment.ringer(&["listen", "--timeout", "0", "--max", "0"]), 64);
}

#[test]
fn what_has_outlived_its_worth_is_not_printed() {
    let environment = TestEnvironment::new();
    assert!(environment.drain().is_empty());
    environment.run(&["notify", "--ttl", "0", "never"]);
    environment.run(&["notify", "--ttl", "1h", "for an hour"]);
    environment.run(&["notify", "--ttl", "300ms", "for a moment"]);
    environment.wait_until("the moment has passed", |status| status["unread"][0]["messages"] == 1);
    assert_eq!(environment.texts(), ["for an hour"]);
    assert!(environment.run(&["log"]).contains("for a moment"), "it stays in the journal");
}

/// It has not read its text yet, so it holds nothing that others need.
#[test]
fn a_writer_that_stands_still_holds_up_no_other() {
    let environment = TestEnvironment::new();
    let mut notify = environment.ringer(&["notify", "-"]);
    let mut writer = notify.stdin(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&writer);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    environment.notify("of another");
    assert_eq!(environment.texts(), ["of another"]);
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    writer.stdin.take().unwrap().write_all(b"late\n").unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(environment.texts(), ["late"]);
}

/// A listener that begins with every signal at its default, whatever the process that runs the tests ignores: `nohup`
/// ignores SIGHUP, a shell without job control SIGINT, and children inherit that.
fn listen_with_default_signals(environment: &TestEnvironment) -> Background {
    let mut command = environment.program("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_ringer"), "listen"]);
    environment.start(command)
}

#[test]
fn a_listener_ended_by_a_signal_loses_nothing() {
    let environment = TestEnvironment::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        let listener = listen_with_default_signals(&environment);
        listener.signal(signal);
        let (printed, exit) = listener.end();
        assert_eq!((printed.len(), exit), (0, None), "{signal:?}");
        environment.notify("hello");
        assert_eq!(environment.texts(), ["hello"]);
    }
    assert!(environment.bells("fifo").is_empty(), "no doorbell is left");
}

#[test]
fn sixty_four_writers_at_once_in_a_fresh_home() {
    let environment = TestEnvironment::new();
    let listener = Background::start(environment.ringer(&["listen", "--follow"]));
    let mut writers: Vec<_> = (0..64)
        .map(|number| environment.ringer(&["notify", &number.to_string()]).spawn().expect("it starts"))
        .collect();
    for writer in &mut writers {
        assert_eq!(writer.wait().unwrap().code(), Some(0));
    }
    let mut received: Vec<u32> =
        (0..64).map(|_| listener.message()["msg"].as_str().unwrap().parse().unwrap()).collect();
    received.sort_unstable();
    assert_eq!(received, (0..64).collect::<Vec<u32>>());
}
