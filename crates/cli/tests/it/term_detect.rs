//! `ringer term detect`.

use crate::ringer::{check, json, ringer};

#[test]
fn the_object_has_every_field() {
    let (out, err) =
        check(ringer(&["term", "detect", "--json"]).env("TERM", "xterm-kitty").env("SSH_TTY", "x"), 0);
    assert!(err.is_empty());
    let report = json(&out);
    assert_eq!(report["terminal"], "kitty");
    assert_eq!(report["row"], 6);
    assert_eq!(report["evidence"], "TERM=xterm-kitty");
    assert_eq!(report["multiplexers"], serde_json::json!([]));
    assert_eq!(report["outer"], serde_json::Value::Null);
    assert_eq!(report["ssh"], true);
    assert_eq!(report["version"], serde_json::Value::Null);
    assert_eq!(
        report["channel"], "ghostty",
        "any kitty takes OSC 777, and only a current one what OSC 99 has now"
    );
    assert_eq!(report["compatible_channel"], "kitty");
}

#[test]
fn with_nothing_to_go_by() {
    let report = json(&check(&mut ringer(&["term", "detect", "--json"]), 0).0);
    assert_eq!((&report["terminal"], &report["row"]), (&"non-interactive".into(), &26.into()));
    assert_eq!(report["compatible_channel"], "no_method_available");
    assert_eq!(report["channel"], "terminal_bell");
}

/// A tmux that is named but not there must neither hang nor fail.
#[test]
fn a_stale_tmux_variable_does_no_harm() {
    let mut command = ringer(&["term", "detect", "--json"]);
    command.env("TMUX", "/nonexistent/socket,1,0").env("TMUX_PANE", "%0").env("TERM", "tmux-256color");
    let report = json(&check(&mut command, 0).0);
    assert_eq!(report["multiplexers"], serde_json::json!(["tmux"]));
    assert_eq!(report["outer"], serde_json::Value::Null);
}

#[test]
fn hostile_variables_do_not_reach_the_screen() {
    let (out, _) = check(ringer(&["term", "detect"]).env("TERM_PROGRAM", "x\x1b]0;gotcha\x07"), 0);
    assert!(!out.contains('\x1b') && !out.contains('\x07') && out.contains("x]0;gotcha"), "{out:?}");
}
