//! What people see first, and what they see when they mistype.

use crate::pty::ringer_in_terminal;
use crate::ringer::{check, ringer};

#[test]
fn without_a_command_it_says_what_to_try_where_there_can_be_no_inbox() {
    let (out, exit) = ringer_in_terminal(&[], &[("TERM", "dumb")]);
    assert_eq!(exit, 0, "{out}");
    assert!(out.contains("this terminal") && out.contains("ringer term notify"), "{out}");
    let (out, _) = check(ringer(&[]).env("TERM", "xterm-kitty"), 0);
    assert_eq!(out, "Nothing needs you.\nNo agents are running.\n", "in a pipe");
}

#[test]
fn version_and_help_succeed_on_standard_output() {
    // The last one is read as other commands are.
    for arguments in [&["--version"][..], &["-V"], &["-V", "status"]] {
        let version = check(&mut ringer(arguments), 0).0;
        assert_eq!(version, format!("ringer {}\n", env!("CARGO_PKG_VERSION")), "{arguments:?}");
    }
    for command in
        [&["help", "list"][..], &["term", "--help"], &["term", "scan", "--help"], &["progress", "--help"]]
    {
        let (out, err) = check(&mut ringer(command), 0);
        assert!(out.contains("Usage: ringer") && err.is_empty(), "{out}{err}");
    }
}

#[test]
fn every_command_shows_examples() {
    for command in [&["term", "detect"][..], &["term", "scan"], &["term", "notify"], &["progress"]] {
        let (out, _) = check(ringer(command).arg("--help"), 0);
        assert!(out.contains(&format!("  ringer {}", command.join(" "))), "{out}");
    }
}

#[test]
fn a_wrong_command_line_is_64_and_says_where_to_look() {
    for wrong in [&["bogus"][..], &["term"], &["term", "detect", "x"], &["progress"], &["--jsno"]] {
        let (out, err) = check(&mut ringer(wrong), 64);
        assert!(
            out.is_empty() && err.contains("\nhint: ") && err.contains("ringer help"),
            "{wrong:?}: {err}"
        );
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    use std::process::Stdio;
    let mut child =
        ringer(&["term", "scan", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The writes fail once it has gone; what counts is how it went.
    let _ = std::io::Write::write_all(&mut input, &b"\x07".repeat(1_000_000));
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
