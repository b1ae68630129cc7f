//! Where some of the standard streams, or all, are no terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use super::pane::RINGER;
use crate::pty::Pane;

/// Runs a line of shell without any terminal. Gives its output.
#[track_caller]
fn piped(line: &str, input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("setsid");
    command.args(["--wait", "sh", "-c", line]).env("RINGER", RINGER).env("RINGER_HUB", "off");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let (mut stdin, input) = (child.stdin.take().expect("piped"), input.to_vec());
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    // A program need not read its input.
    let _ = writer.join().expect("no panic");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn in_a_pipe_it_is_as_if_it_were_not_there() {
    let flood: Vec<u8> = (0..=255u8).cycle().take(300_000).collect();
    assert!(piped("$RINGER run -- cat", &flood) == flood);
    assert_eq!(piped("$RINGER run -- sh -c 'test -t 0 || test -t 1 || exit 4'; echo $?", b""), b"4\n");
    assert_eq!(piped("$RINGER run -- cat <&-; echo $?", b"").last(), Some(&b'\n'));
    assert_eq!(piped("{ $RINGER run -- sh -c 'kill -9 $$'; } 2> /dev/null; echo $?", b""), b"137\n");
}

#[test]
fn each_stream_is_what_it_would_be() {
    let streams =
        "for n in 0 1 2; do if test -t $n; then printf 't' >> $OUT; else printf '-' >> $OUT; fi; done";
    for (redirections, expected) in [
        ("", "ttt"),
        ("< /dev/null", "-tt"),
        ("> /dev/null", "t-t"),
        ("2> /dev/null", "tt-"),
        ("< /dev/null 2> /dev/null", "-t-"),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let out = folder.path().join("streams");
        let out = out.to_str().expect("a path");
        let line = format!("{RINGER} run -- sh -c '{streams}' {redirections}");
        let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("OUT", out)];
        assert!(Pane::start(&["sh", "-c", &line], &variables, None).end().1.success(), "{redirections}");
        assert_eq!(std::fs::read_to_string(out).expect("a file"), expected, "{redirections}");
    }
}

/// As `less` does it.
#[test]
fn keys_arrive_at_a_program_that_reads_a_pipe() {
    let line =
        format!("printf text | {RINGER} run -- sh -c 'cat; echo; read key < /dev/tty; echo \"key <$key>\"'");
    let mut pane = Pane::start(&["sh", "-c", &line], &[("RINGER_HUB", "off"), ("HOME", "/nowhere")], None);
    pane.wait_for("text");
    pane.type_bytes(b"q\n");
    pane.wait_for("key <q>");
}
