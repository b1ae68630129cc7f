//! What is on disk when: the order of calls is what survives a power cut.
//!
//! A call that comes later cannot have been needed earlier, so the order that strace tells is proof.

use crate::home::{TestEnvironment, texts};
use crate::trace::Trace;

const ORDER: &str = "fdatasync,fsync,openat,write,pwrite64,exit_group";

/// A log synced to disk, by either call.
const LOG_SYNCED: [&str; 2] = ["sync(", "/ringer.db-wal>"];

#[test]
fn notify_syncs_before_it_rings_and_before_it_ends() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&[]);
    let trace = Trace::of(&environment, ORDER, &["notify", "hello"]);
    assert_eq!(trace.exit, Some(0));
    let written = trace.last(&["pwrite64(", "/ringer.db-wal>"]);
    let synced = trace.last(&LOG_SYNCED);
    let rung = trace.first(&["openat(", ".fifo\"", "O_WRONLY"]);
    let ended = trace.last(&["exit_group("]);
    assert!(written < synced && synced < rung && rung < ended, "{}", trace.calls.join("\n"));
    let bell = &trace.calls[rung];
    assert!(bell.contains("O_NONBLOCK") && !bell.contains("O_CREAT"), "{bell}");
    assert_eq!(texts(&listener.messages()), ["hello"]);
}

#[test]
fn the_first_notify_puts_every_new_name_on_disk() {
    let environment = TestEnvironment::new();
    let trace = Trace::of(&environment, "fsync,fdatasync,exit_group", &["notify", "hello"]);
    assert_eq!(trace.exit, Some(0));
    let ended = trace.last(&["exit_group("]);
    let home = format!("<{}>)", environment.home().display());
    let parent = format!("<{}>)", environment.path().display());
    for directory in [home, parent] {
        assert!(trace.first(&["sync(", &directory]) < ended);
    }
    assert!(trace.first(&LOG_SYNCED) < ended);
}

/// A repository whose id is gone after a power cut gets another one, and what was sent under the old id is not found.
#[test]
fn the_first_notify_in_a_repository_puts_its_id_on_disk() {
    let environment = TestEnvironment::new();
    let trace = Trace::of(&environment, "fsync,fdatasync,exit_group", &["notify", "hello"]);
    let ended = trace.last(&["exit_group("]);
    let git = environment.repository().canonicalize().unwrap().join(".git");
    for directory in [git.join("ringer"), git] {
        let directory = format!("<{}>)", directory.display());
        assert!(trace.first(&["sync(", &directory]) < ended);
    }
}

#[test]
fn notify_starts_nothing() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&[]);
    let starts = "execve,execveat,clone,clone3,fork,vfork,socket,epoll_create1,eventfd2,io_uring_setup";
    let trace = Trace::of(&environment, starts, &["notify", "hello"]);
    assert_eq!(trace.exit, Some(0));
    assert_eq!(trace.count(&["execve("]), 1, "no program but itself");
    assert_eq!(
        trace.calls.len(),
        1,
        "no process, no thread, no runtime, and no hub to connect to: {:?}",
        trace.calls
    );
    assert_eq!(texts(&listener.messages()), ["hello"]);
}

#[test]
fn listen_prints_before_it_moves_its_place() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let trace = Trace::of(&environment, ORDER, &["listen", "--timeout", "0"]);
    assert_eq!(trace.exit, Some(0));
    let printed = trace.first(&["write(1<", "{\\\"ts\\\":"]);
    let moved = trace.last(&["pwrite64(", "/ringer.db-wal>"]);
    let synced = trace.last(&LOG_SYNCED);
    assert!(printed < moved && moved < synced, "{}", trace.calls.join("\n"));
    // The place of a consumer that has been here before moves only then.
    environment.notify("again");
    let trace = Trace::of(&environment, ORDER, &["listen", "--timeout", "0"]);
    let printed = trace.first(&["write(1<"]);
    let syncs = |calls: &[String]| {
        calls.iter().filter(|call| call.contains(LOG_SYNCED[1]) && call.contains(LOG_SYNCED[0])).count()
    };
    assert_eq!(syncs(&trace.calls[printed..]), 1, "{}", trace.calls.join("\n"));
}

/// Nothing wakes it in between: it waits at its doorbell in one call, until its time is over.
#[test]
fn a_waiting_listener_sleeps_in_one_call() {
    let environment = TestEnvironment::new();
    // Its time runs from its start: making a home, with all that is written for it, would take a part of it.
    environment.notify("there is a journal");
    environment.drain();
    let waits = "poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,nanosleep,clock_nanosleep";
    let trace = Trace::of(&environment, waits, &["listen", "--timeout", "3"]);
    assert_eq!(trace.exit, Some(0));
    assert_eq!(trace.count(&["poll(", ".fifo>"]), 1, "{}", trace.calls.join("\n"));
    assert_eq!(trace.count(&["sleep("]) + trace.count(&["select"]) + trace.count(&["epoll"]), 0);
}

#[test]
fn a_waiting_listener_makes_no_timer_and_starts_nothing() {
    let environment = TestEnvironment::new();
    let starts = "clone,clone3,fork,vfork,timerfd_create,setitimer,timer_create,alarm";
    let trace = Trace::of(&environment, starts, &["listen", "--timeout", "0.05"]);
    assert_eq!(trace.exit, Some(0));
    assert!(trace.calls.is_empty(), "{:?}", trace.calls);
}
