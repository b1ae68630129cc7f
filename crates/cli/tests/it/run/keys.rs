//! What is typed arrives as it is typed.

use super::pane::RINGER;
use crate::pty::Pane;

/// Keys of all sorts: Ctrl-C as a byte, UTF-8, arrows, kitty's keyboard, mouse, a paste with an escape in it, an answer.
const KEYS: &[&[u8]] = &[
    b"\x03",
    "é✳".as_bytes(),
    b"\x1b[A",
    b"\x1bOP",
    b"\x1b[97;5u",
    b"\x1b[<0;10;20M",
    b"\x1b[200~two\rlines \x1b[I\x1b[201~",
    b"\x1b[?62;22c",
    b"\x1b",
    b"\x00\x11\x13\x1a\x1c\x7f\xff",
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

/// A program that turns its terminal raw and prints what it gets.
#[track_caller]
fn check_keys(terminal: &str, before: &str, typed: &[u8], expected: &[u8]) {
    let script = format!(
        "stty raw -echo; printf '{before}ready'; dd bs=1 count={} 2>/dev/null | od -An -v -tx1 | tr -d '\\n' | tr -s ' ' > \"$OUT\"",
        expected.len()
    );
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("keys");
    let out = out.to_str().expect("a path");
    let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("TERM", terminal), ("OUT", out)];
    let mut pane = Pane::start(&[RINGER, "run", "--", "sh", "-c", &script], &variables, None);
    pane.wait_for("ready");
    pane.type_bytes(typed);
    assert!(pane.end().1.success());
    let got = std::fs::read_to_string(out).expect("a file");
    assert_eq!(got.trim(), hex(expected).trim());
}

#[test]
fn keys_pastes_and_mice_arrive_as_they_are() {
    let all = KEYS.concat();
    check_keys("dumb", "", &all, &all);
    check_keys("xterm-256color", "", &all, &all);
}

#[test]
fn focus_reports_reach_only_a_program_that_asked_for_them() {
    check_keys("xterm-256color", "", b"\x1b[Ia\x1b[Ob", b"ab");
    check_keys("xterm-256color", "\\033[?1004h", b"\x1b[Ia\x1b[Ob", b"\x1b[Ia\x1b[Ob");
    check_keys("xterm-256color", "\\033[?1004h\\033[?1004l", b"\x1b[Ia\x1b[Ob", b"ab");
}

#[test]
fn the_terminal_reports_focus_as_long_as_run_runs() {
    let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("TERM", "xterm")];
    let script = "printf '\\033[?1004h\\033[?1004lready'; read line";
    let mut pane = Pane::start(&[RINGER, "run", "--", "sh", "-c", script], &variables, None);
    pane.wait_for("ready");
    // On at the beginning, by the program, and again after the program turned it off.
    pane.wait_for_times("\x1b[?1004h", 3);
    pane.type_bytes(b"\n");
    let text = String::from_utf8_lossy(&pane.end().0).into_owned();
    assert!(text.ends_with("\x1b[?1004l"), "{text:?}");
}
