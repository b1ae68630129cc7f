//! Ctrl-Z, fg and bg, in a real shell; sizes.

use super::pane::{RINGER, run_script};
use crate::pty::Pane;

/// An interactive shell with `run` as a command.
fn shell() -> Pane {
    let mut shell = Pane::start(
        &["bash", "--norc", "--noediting", "-i"],
        &[("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("PS1", "$ ")],
        None,
    );
    shell.type_bytes(
        format!("run() {{ {RINGER} run -- \"$@\"; }}; echo shell is ready | tr a-z A-Z\n").as_bytes(),
    );
    shell.wait_for("SHELL IS READY");
    shell
}

#[test]
fn ctrl_z_stops_run_and_fg_continues_the_command() {
    let mut shell = shell();
    shell.type_bytes(b"run sed -u s/line/done/\n");
    shell.type_bytes(b"line 0\n");
    // Only when it has printed something it is surely there, and not about to be started or continued.
    shell.wait_for("done 0");
    for round in 1..=3 {
        shell.type_bytes(b"\x1a");
        shell.wait_for_times("Stopped", round);
        // The terminal is the shell's again: it echoes, and lines are lines.
        shell.type_bytes(b"stty -a | grep -c ' icanon' | sed s/^/canonical:/\n");
        shell.wait_for_times("canonical:1", round);
        shell.type_bytes(b"fg\n");
        shell.type_bytes(format!("line {round}\n").as_bytes());
        shell.wait_for(&format!("done {round}"));
    }
    let prompts = shell.text().matches("$ ").count();
    shell.type_bytes(b"\x04");
    shell.wait_for_times("$ ", prompts + 1);
    shell.type_bytes(b"echo code $? | tr a-z A-Z; exit\n");
    shell.wait_for("CODE 0");
}

#[test]
fn in_the_background_the_command_goes_on_and_comes_back() {
    let mut shell = shell();
    shell.type_bytes(
        b"run sh -c 'echo started $((1+1)); read a; echo \"first <$a>\"; read b; echo \"second <$b>\"'\n",
    );
    shell.wait_for("started 2");
    shell.type_bytes(b"\x1a");
    shell.wait_for("Stopped");
    shell.type_bytes(b"bg\n");
    shell.type_bytes(b"echo the shell answers | tr a-z A-Z\n");
    shell.wait_for("THE SHELL ANSWERS");
    shell.type_bytes(b"jobs\n");
    shell.wait_for("Running");
    shell.type_bytes(b"fg\n");
    shell.type_bytes(b"one\n");
    shell.wait_for("first <one>");
    shell.type_bytes(b"two\n");
    shell.wait_for("second <two>");
}

#[test]
fn a_job_inside_is_stopped_without_run() {
    let mut shell = shell();
    shell.type_bytes(b"run bash --norc --noediting -i\n");
    shell.wait_for_times("$ ", 3);
    shell.type_bytes(b"echo inside $((1+1)); cat\n");
    shell.wait_for("inside 2");
    shell.type_bytes(b"cat runs\n");
    shell.wait_for_times("cat runs\r\n", 2);
    shell.type_bytes(b"\x1a");
    shell.wait_for("Stopped");
    shell.type_bytes(b"fg\n");
    shell.type_bytes(b"cat goes on\n");
    shell.wait_for_times("cat goes on\r\n", 2);
    let prompts = shell.text().matches("$ ").count();
    shell.type_bytes(b"\x04");
    shell.wait_for_times("$ ", prompts + 1);
    shell.type_bytes(b"exit 5\n");
    shell.wait_for("exit\r\n$ ");
    shell.type_bytes(b"echo code $? | tr a-z A-Z; exit\n");
    shell.wait_for("CODE 5");
}

/// No shell could continue it.
#[test]
fn where_no_shell_is_around_the_command_goes_on_after_ctrl_z() {
    let mut pane = run_script("echo started; exec cat");
    pane.wait_for("started");
    pane.type_bytes(b"ready\n");
    pane.wait_for_times("ready", 2);
    pane.type_bytes(b"\x1a");
    pane.wait_for("^Z");
    pane.type_bytes(b"still here\n");
    pane.wait_for_times("still here", 2);
    pane.type_bytes(b"\x04");
    let (written, status) = pane.end();
    assert!(status.success());
    let text = String::from_utf8_lossy(&written).into_owned();
    assert_eq!(text.matches("still here").count(), 2, "{text}");
}

#[test]
fn sizes_arrive_however_often_they_change() {
    let mut pane = run_script("trap 'stty size' WINCH; stty size; while :; do read line && exit; done");
    pane.wait_for("24 80\r\n");
    for columns in 100..300 {
        pane.resize(50, columns);
    }
    pane.wait_for("50 299\r\n");
    pane.resize(30, 90);
    pane.wait_for("30 90\r\n");
    pane.type_bytes(b"x\n");
    assert!(pane.end().1.success());
}
