//! A disk that fails: `strace` makes one call after the other answer "input/output error".

use std::path::PathBuf;
use std::process::Output;

use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::check;

/// What is asked of a disk.
const CALLS: [&str; 6] = ["pread64", "pwrite64", "fdatasync", "fsync", "ftruncate", "openat"];

/// Runs a command with the so-many-th call of a name on a file of the home failing. `None` if it makes no so many.
fn fail(environment: &TestEnvironment, call: &str, number: usize, arguments: &[&str]) -> Option<Output> {
    let record = tempfile::NamedTempFile::new().expect("a file");
    let mut strace = environment.program("strace");
    strace.args(["-f", "-qq", "-o"]).arg(record.path());
    for path in files(environment) {
        strace.arg("-P").arg(path);
    }
    strace.args(["-e", &format!("inject={call}:error=EIO:when={number}")]);
    strace.arg(env!("CARGO_BIN_EXE_ringer")).args(arguments);
    let output = strace.output().expect("strace runs: `cargo xtask test` installs it");
    let calls = std::fs::read_to_string(record.path()).expect("a record");
    calls.contains("(INJECTED)").then_some(output)
}

/// The files that hold what must not be lost.
fn files(environment: &TestEnvironment) -> Vec<PathBuf> {
    let names = ["", "ringer.db", "ringer.db-wal", "ringer.db-shm", "write.lock"];
    names.iter().map(|name| environment.home().join(name)).collect()
}

/// It said what happened and what to do, or it did what it was asked in spite of it.
#[track_caller]
fn check_said(output: &Output, when: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(75) => assert!(said.contains("ringer doctor --repair"), "{when}: {said}"),
        Some(74) => assert!(said.contains("dmesg") && said.contains("failed"), "{when}: {said}"),
        code => panic!("{when}: {code:?}: {said}"),
    }
}

/// A page that cannot be read is damage, and its file set aside by a repair; anything else is not.
#[track_caller]
fn check_aside(environment: &TestEnvironment, call: &str, number: usize) {
    environment.run(&["doctor", "--repair"]);
    assert!(call == "pread64" || !damaged(environment), "{call} {number}: it was set aside");
    let entries = std::fs::read_dir(environment.home()).expect("a home").flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")) {
        std::fs::remove_file(entry.path()).expect("removed");
    }
}

fn damaged(environment: &TestEnvironment) -> bool {
    let entries = std::fs::read_dir(environment.home()).expect("a home").flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().contains("damaged"))
}

#[test]
fn notify_says_so_and_what_it_acknowledged_is_there() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let mut acknowledged = vec!["before".to_owned()];
    let mut tried = 0;
    for call in CALLS {
        for number in 1.. {
            let body = format!("{call} {number}");
            let Some(output) = fail(&environment, call, number, &["notify", &body]) else { break };
            check_said(&output, &body);
            if output.status.success() {
                acknowledged.push(body);
            }
            check_aside(&environment, call, number);
            tried += 1;
        }
    }
    assert!(tried > 15, "only {tried} calls were tried");
    environment.notify("after");
    acknowledged.push("after".to_owned());
    let mut delivered = environment.texts();
    // What was refused may be there all the same: after a failed write it is unknown whether it got to the disk.
    delivered.retain(|body| acknowledged.contains(body));
    assert_eq!(delivered, acknowledged);
}

#[test]
fn listen_says_so_and_what_it_did_not_hand_over_comes_again() {
    let environment = TestEnvironment::new();
    let mut tried = 0;
    for call in CALLS {
        for number in 1.. {
            let body = format!("{call} {number}");
            environment.notify(&body);
            let output = fail(&environment, call, number, &["listen", "--timeout", "0"]);
            let again = environment.texts();
            let Some(output) = output else { break };
            check_said(&output, &body);
            let printed = texts(&lines(&String::from_utf8(output.stdout.clone()).expect("text")));
            if output.status.success() {
                assert_eq!((printed, again), (vec![body], vec![]));
            } else {
                // Handed over before its place could be put on disk, or not: it may come twice, and never not at all.
                assert!(printed.contains(&body) || again == [body.as_str()], "{body}: {again:?}");
            }
            check_aside(&environment, call, number);
            tried += 1;
        }
    }
    assert!(tried > 15, "only {tried} calls were tried");
    check(&mut environment.ringer(&["log"]), 0);
}
