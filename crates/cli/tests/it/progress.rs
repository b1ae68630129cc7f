//! `ringer progress`.

use crate::pty::ringer_in_terminal;
use crate::ringer::{check, json, ringer};

const KITTY: [(&str, &str); 3] =
    [("TERM", "xterm-kitty"), ("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.47.0")];

#[test]
fn every_form_reaches_the_terminal() {
    for (arguments, sequence) in [
        (&["progress", "42"][..], "\x1b]9;4;1;42\x1b\\"),
        (&["progress", "indeterminate"], "\x1b]9;4;3\x1b\\"),
        (&["progress", "error", "80"], "\x1b]9;4;2;80\x1b\\"),
        (&["progress", "paused", "10"], "\x1b]9;4;4;10\x1b\\"),
        (&["progress", "done"], "\x1b]9;4;0\x1b\\"),
    ] {
        assert_eq!(ringer_in_terminal(arguments, &KITTY), (sequence.to_owned(), 0), "{arguments:?}");
    }
}

#[test]
fn a_terminal_that_would_misread_it_gets_none() {
    let (written, exit) = ringer_in_terminal(&["progress", "42"], &[("TERM", "foot")]);
    assert!(exit == 0 && !written.contains('\x1b') && written.contains("--force"), "{written:?}");
    let (written, _) = ringer_in_terminal(&["progress", "--force", "42"], &[("TERM", "foot")]);
    assert_eq!(written, "\x1b]9;4;1;42\x1b\\");
}

#[test]
fn wrong_values_are_64_with_what_to_type() {
    for wrong in [&["101"][..], &["-1"], &["half"], &["error", "101"], &["42", "43"], &["done", "1"]] {
        let (out, err) = check(ringer(&["progress"]).args(wrong), 64);
        assert!(out.is_empty() && err.contains("hint: ringer progress"), "{wrong:?}: {err}");
    }
}

#[test]
fn without_a_terminal_it_is_69() {
    for term in ["xterm-kitty", "dumb"] {
        let (_, err) = check(ringer(&["progress", "42"]).env("TERM", term), 69);
        assert!(err.contains("no controlling terminal") && err.contains("--stdout"), "{err}");
    }
}

#[test]
fn standard_output_and_json() {
    let (out, err) = check(&mut ringer(&["progress", "42", "--stdout", "--json"]), 0);
    assert_eq!(out, "\x1b]9;4;1;42\x1b\\");
    let report = json(&err);
    assert_eq!(
        (&report["state"], &report["value"], &report["sent"]),
        (&"set".into(), &42.into(), &true.into())
    );
}
