//! `ringer term scan`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::ringer::{check, check_with_input, json, ringer};

const STREAM: &[u8] = b"text\x1b]0;\xe2\x9c\xb3 Claude Code\x07\x1b]9;4;1;50\x1b\\\x07\
    \x1b]99;i=7:u=2:d=0:p=title;Claude Code\x1b\\\x1b]99;i=7:p=body;needs you\x1b\\\
    \x1b]7501;state=blocked:kind=permission:app=codex:msg=aGk=\x1b\\\x1b]7501;?\x07\
    \x1b]8;;file:///x\x07\x1b]7;file:///tmp\x07\x1b]133;D;1\x07";

#[test]
fn one_object_per_event() {
    let out = check_with_input(&mut ringer(&["term", "scan", "--json"]), STREAM);
    let events: Vec<serde_json::Value> = out.lines().map(json).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(
        names,
        ["title", "progress", "bell", "notification", "status", "query", "hyperlink", "cwd", "prompt"]
    );
    assert_eq!((&events[0]["offset"], &events[0]["text"]), (&4.into(), &"✳ Claude Code".into()));
    assert_eq!((&events[1]["state"], &events[1]["value"]), (&"set".into(), &50.into()));
    let notification = &events[3];
    assert_eq!(notification["protocol"], "osc99");
    assert_eq!((&notification["id"], &notification["urgency"]), (&"7".into(), &"critical".into()));
    assert_eq!((&notification["title"], &notification["body"]), (&"Claude Code".into(), &"needs you".into()));
    let status = &events[4];
    assert_eq!((&status["state"], &status["kind"]), (&"blocked".into(), &"permission".into()));
    assert_eq!((&status["app"], &status["message"]), (&"codex".into(), &"hi".into()));
    assert_eq!(events[5]["protocol"], "osc7501");
    assert_eq!((&events[8]["mark"], &events[8]["exit_code"]), (&"command_end".into(), &1.into()));
}

#[test]
fn a_file_reads_like_standard_input() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), STREAM).unwrap();
    let path = file.path().to_str().unwrap();
    let from_file = check(&mut ringer(&["term", "scan", "--json", path]), 0).0;
    assert_eq!(from_file, check_with_input(&mut ringer(&["term", "scan", "--json", "-"]), STREAM));
}

/// While a pipe grows, an event is printed as soon as its sequence is complete.
#[test]
fn a_growing_pipe_is_followed() {
    let mut child =
        ringer(&["term", "scan", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for title in ["one", "two"] {
        input.write_all(format!("\x1b]0;{title}\x07").as_bytes()).unwrap();
        assert_eq!(json(&lines.next().unwrap().unwrap())["text"], title);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_people_read_is_harmless() {
    let out = check_with_input(&mut ringer(&["term", "scan"]), b"\x1b]0;a\x9bb\xc2\x9bc\nd\x07");
    assert_eq!(out, "         0  title         a\u{fffd}bc d\n");
}

#[test]
fn what_cannot_be_read_is_66() {
    let (_, err) = check(&mut ringer(&["term", "scan", "/nonexistent/file"]), 66);
    assert!(err.contains("/nonexistent/file") && err.contains("hint:"), "{err}");
    check(&mut ringer(&["term", "scan", "/"]), 66);
}
