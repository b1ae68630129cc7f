//! `ringer term notify`.

use std::os::unix::ffi::OsStrExt;

use crate::pty::{in_terminal, ringer_in_terminal};
use crate::ringer::{check, json, ringer};

#[test]
fn it_reaches_the_controlling_terminal_and_names_the_method() {
    let (written, exit) = ringer_in_terminal(
        &["term", "notify", "--title", "T", "--id", "b-1", "hello"],
        &[("TERM", "xterm-kitty"), ("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.48.2")],
    );
    assert_eq!(exit, 0);
    let sequence = "\x1b]99;i=b-1:d=0:p=title;T\x1b\\\x1b]99;i=b-1:d=0:p=body;hello\x1b\\\x1b]99;i=b-1:d=1:a=focus;\x1b\\";
    assert_eq!(written, format!("{sequence}kitty: the terminal is kitty 0.48.2\r\n"));
}

/// From inside a pipeline the sequence still goes to the terminal and only the report to the pipe.
#[test]
fn a_pipeline_does_not_swallow_it() {
    let script = format!("{} term notify --json hello | tr a-z A-Z", env!("CARGO_BIN_EXE_ringer"));
    let (written, exit) = in_terminal("sh", &["-c", &script], &[("TERM", "xterm-ghostty")]);
    let written = String::from_utf8_lossy(&written);
    assert_eq!(exit, 0);
    assert!(written.starts_with("\x1b]777;notify;;hello\x1b\\"), "{written:?}");
    assert!(written.contains(r#""METHOD":"GHOSTTY""#), "{written:?}");
}

#[test]
fn each_channel_on_standard_output() {
    for (channel, start) in [
        ("iterm2", "\x1b]9;hi\x1b\\"),
        ("iterm2_with_bell", "\x1b]9;hi\x1b\\\x07"),
        ("kitty", "\x1b]99;i="),
        ("ghostty", "\x1b]777;notify;;hi\x1b\\"),
        ("terminal_bell", "\x07"),
        ("notifications_disabled", ""),
        ("compatible", ""),
    ] {
        let (out, err) =
            check(&mut ringer(&["term", "notify", "--stdout", "--json", "--channel", channel, "hi"]), 0);
        assert!(out.starts_with(start) && (out.is_empty() == start.is_empty()), "{channel}: {out:?}");
        let report = json(&err);
        assert_eq!(report["channel"], channel);
        assert_eq!(report["bytes"], out.len());
    }
}

#[test]
fn wrong_arguments_are_64_and_say_why() {
    for (wrong, why) in [
        (&["--channel", "pigeon", "x"][..], "terminal_bell"),
        (&["--id", "a;b", "x"], "';'"),
        (&["--id", "", "x"], "empty"),
        (&[""], "the message is empty"),
        (&[], "<BODY>"),
    ] {
        let (out, err) = check(ringer(&["term", "notify"]).args(wrong), 64);
        assert!(out.is_empty() && err.contains(why), "{wrong:?}: {err}");
    }
    let not_text = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let (_, err) = check(ringer(&["term", "notify"]).arg(not_text), 64);
    assert!(err.contains("UTF-8"), "{err}");
}

#[test]
fn without_a_terminal_it_is_69_and_says_what_to_do() {
    let (_, err) = check(&mut ringer(&["term", "notify", "hello"]), 69);
    assert!(err.contains("no controlling terminal") && err.contains("--stdout"), "{err}");
}

#[test]
fn nothing_to_send_needs_no_terminal() {
    let (out, _) = check(&mut ringer(&["term", "notify", "--channel", "notifications_disabled", "hello"]), 0);
    assert!(out.starts_with("disabled"), "{out}");
}

#[test]
fn hostile_text_stays_text() {
    let (out, _) = check(
        &mut ringer(&["term", "notify", "--stdout", "--channel", "ghostty", "a\x1b]0;b\x07c;d\u{9d}e"]),
        0,
    );
    assert_eq!(out, "\x1b]777;notify;;a]0,bc,de\x1b\\");
}
