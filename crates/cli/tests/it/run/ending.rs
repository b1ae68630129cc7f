//! How a command ends, and what cannot be run.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use test_support::until;

use super::pane::{RINGER, run_script};
use crate::pty::Pane;

#[track_caller]
fn check_exit(script: &str, code: u32) {
    assert_eq!(run_script(script).end().1.exit_code(), code, "{script}");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    check_exit("true", 0);
    check_exit("exit 3", 3);
    check_exit("exit 255", 255);
}

/// What a shell in a terminal makes of it.
fn after_signal(signal: &str) -> String {
    let script = format!("set -m; {RINGER} run -- sh -c 'kill -{signal} $$'; echo \"name $(kill -l $?)\"");
    let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere")];
    let pane = Pane::start(&["bash", "--norc", "-c", &script], &variables, None);
    String::from_utf8_lossy(&pane.end().0).into_owned()
}

#[test]
fn a_command_that_ends_by_a_signal_ends_run_by_it() {
    for signal in ["TERM", "KILL", "SEGV", "HUP"] {
        let text = after_signal(signal);
        assert!(text.contains(&format!("name {signal}")), "{signal}: {text}");
    }
    // A shell ends a script whose command was interrupted.
    assert_eq!(after_signal("INT").trim(), "");
}

#[test]
fn a_signal_to_run_reaches_the_command() {
    for (signal, name) in
        [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1")]
    {
        let pane = run_script(&format!(
            "trap 'echo got {name}; exit 7' {name}; echo ready; while :; do read line; done"
        ));
        pane.wait_for("ready");
        kill_process(Pid::from_raw(pane.pid()).expect("a pid"), signal).expect("it runs");
        let (written, status) = pane.end();
        assert_eq!(status.exit_code(), 7, "{name}");
        assert!(String::from_utf8_lossy(&written).contains(&format!("got {name}")));
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_command() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("ended");
    let script = "trap \"echo yes > $OUT; exit\" HUP; echo ready; while :; do read line || sleep 0.01; done";
    // `script` is the terminal here: when it is killed, its PTY is closed.
    let run = format!("{RINGER} run -- sh -c '{script}'");
    let out = file.to_str().expect("a path");
    let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("OUT", out), ("SHELL", "/bin/sh")];
    let pane = Pane::start(&["script", "-qc", &run, "/dev/null"], &variables, None);
    pane.wait_for("ready");
    kill_process(Pid::from_raw(pane.pid()).expect("a pid"), Signal::KILL).expect("it runs");
    until("the command got SIGHUP", || fs::read_to_string(&file).is_ok_and(|text| text == "yes\n"));
}

#[track_caller]
fn check_refused(command: &[&str], code: i32, says: &str) {
    let mut run = Command::new(RINGER);
    let output = run.arg("run").args(command).env("RINGER_HUB", "off").output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(says), "{error}");
}

#[test]
fn what_cannot_be_run_is_refused_as_shells_do_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("notes.txt");
    fs::write(&file, "text").expect("a file");
    let file = file.to_str().expect("a path");
    check_refused(&["--", "no-such-command"], 127, "command not found: no-such-command");
    check_refused(&["--", "/no/such/command"], 127, "cannot run /no/such/command");
    check_refused(&["--", file], 126, &format!("chmod +x {file}"));
    check_refused(&["--", "/"], 126, "it is a directory");
    check_refused(&[], 64, "COMMAND");
    check_refused(&["--name", "", "--", "true"], 64, "empty");
}
