//! Messages that are refused: the exit code, why, what to do, and nothing stored.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::home::TestEnvironment;

const LIMIT: usize = 64 * 1024;

/// Every refusal says why, and what to do.
#[track_caller]
fn check(arguments: &[&OsStr], input: &[u8], exit: i32, why: &str) {
    let environment = TestEnvironment::new();
    let mut command = environment.ringer(&["notify"]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It may refuse before it has read everything.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(exit), "{err}");
    assert!(output.stdout.is_empty() && err.contains(why), "{err}");
    assert!(err.contains("\nhint: "), "it does not say what to do: {err}");
    assert!(environment.drain().is_empty() && environment.run(&["log", "--everywhere"]).is_empty());
}

fn words<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().map(|word| OsStr::new(*word)).collect()
}

#[test]
fn empty() {
    for text in ["", " ", "\n\t \n"] {
        check(&words(&[text]), b"", 64, "the message is empty");
    }
    check(&words(&["-"]), b"", 64, "the message is empty");
    check(&words(&["-"]), b" \n", 64, "the message is empty");
}

#[test]
fn a_nul_on_standard_input() {
    check(&words(&["-"]), b"a\0b", 65, "'\\0'");
}

#[test]
fn too_long_on_standard_input() {
    check(&words(&["-"]), &b"x".repeat(LIMIT + 1), 65, "65536");
    check(&words(&["-"]), &b"x".repeat(LIMIT * 100), 65, "65536");
}

#[test]
fn too_long_as_an_argument() {
    check(&words(&[&"x".repeat(LIMIT + 1)]), b"", 65, "65537 bytes; the limit is 65536");
    check(&words(&[&"é".repeat(LIMIT / 2 + 1)]), b"", 65, "the limit is 65536");
}

#[test]
fn not_utf_8() {
    let broken = OsString::from(OsStr::from_bytes(b"caf\xe9"));
    check(&[&broken], b"", 64, "UTF-8");
    check(&[OsStr::new("--from"), &broken, OsStr::new("x")], b"", 64, "UTF-8");
    check(&words(&["-"]), b"caf\xe9", 65, "not UTF-8");
    check(&words(&["-"]), b"half a character: \xf0\x9f\xa6", 65, "not UTF-8");
}

#[test]
fn an_unknown_kind() {
    let known = "complete, waiting, permission, idle, question, stuck, error, status";
    check(&words(&["--type", "done", "x"]), b"", 64, known);
    check(&words(&["--type", "mark-read", "x"]), b"", 64, known);
    check(&words(&["--type", "", "x"]), b"", 64, "--kind");
}

#[test]
fn names_that_cannot_be_kept() {
    let long = "x".repeat(257);
    for (option, what) in
        [("--from", "sender"), ("--to", "agent"), ("--key", "key"), ("--question-id", "question id")]
    {
        check(&words(&[option, "a\nb", "x"]), b"", 65, &format!("the {what} contains '\\n'"));
        check(&words(&[option, &long, "x"]), b"", 65, "the limit is 256");
        check(&words(&[option, "", "x"]), b"", 64, &format!("the {what} is empty"));
    }
    for option in ["--title", "--subtitle"] {
        check(&words(&[option, " ", "x"]), b"", 64, "is empty");
        check(&words(&[option, &"x".repeat(4097), "x"]), b"", 65, "the limit is 4096");
    }
}

#[test]
fn nothing_to_send() {
    check(&[], b"", 64, "<MESSAGE>");
}

#[test]
fn the_longest_that_is_taken() {
    let environment = TestEnvironment::new();
    let longest = "x".repeat(LIMIT);
    environment.notify(&longest);
    // What programs print ends in a newline that does not count.
    let input = format!("{longest}\n");
    crate::ringer::check_with_input(&mut environment.ringer(&["notify", "-"]), input.as_bytes());
    assert!(environment.texts() == [longest.clone()] && environment.texts() == [longest]);
}
