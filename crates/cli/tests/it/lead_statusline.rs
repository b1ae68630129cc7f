//! `ringer lead`, and `ringer statusline` in each of its forms.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::TestEnvironment;
use crate::ringer::{check, check_with_input, json as read};

#[test]
fn a_lead_is_wanted_or_not() {
    let environment = TestEnvironment::new();
    let say = |arguments: &[&str]| {
        let mut command = environment.ringer(&["lead"]);
        check(command.args(arguments), 0).0
    };
    assert!(say(&[]).contains("No lead agent in"));
    assert!(say(&["on"]).contains("The next agent session in"));
    assert!(say(&["on"]).contains("The next agent session in"), "twice is once");
    let report = read(&say(&["--json"]));
    assert_eq!((&report["wanted"], &report["agent"]), (&json!(true), &Value::Null));
    start_session(&environment, "12345678-aaaa");
    assert!(say(&[]).starts_with("claude-12345678 is the lead of "));
    assert_eq!(read(&say(&["--json"]))["agent"], "claude-12345678");
    assert!(say(&["off"]).contains("No lead agent in"));
    assert_eq!(read(&say(&["--json"]))["wanted"], false);
    assert!(say(&["on"]).contains("The next agent session in"), "the old one does not come back by itself");
}

fn start_session(environment: &TestEnvironment, session: &str) {
    let input = json!({"session_id": session, "cwd": environment.repository(), "source": "startup"});
    check_with_input(
        &mut environment.ringer(&["hook", "claude", "SessionStart"]),
        input.to_string().as_bytes(),
    );
}

#[test]
fn each_repository_has_its_own_lead() {
    let environment = TestEnvironment::new();
    let other = environment.make_repository("other");
    environment.run(&["lead", "on"]);
    let (out, _) = check(environment.ringer(&["lead"]).current_dir(&other), 0);
    assert!(out.contains("No lead agent"), "{out}");
    start_session(&environment, "12345678-aaaa");
    check(environment.ringer(&["lead", "on"]).current_dir(&other), 0);
    let (out, _) = check(environment.ringer(&["lead"]).current_dir(&other), 0);
    assert!(out.contains("The next agent session in"), "{out}");
}

#[test]
fn wrong_words() {
    let environment = TestEnvironment::new();
    for wrong in [
        &["lead", "maybe"][..],
        &["lead", "on", "off"],
        &["statusline", "emacs"],
        &["statusline", "tmux", "x"],
    ] {
        let (out, err) = check(&mut environment.ringer(wrong), 64);
        assert!(out.is_empty() && err.contains("ringer help"), "{wrong:?}: {err}");
    }
    assert!(!environment.home().exists());
}

/// Two unread messages, and an agent that works.
fn busy() -> TestEnvironment {
    let environment = TestEnvironment::new();
    environment.notify("one");
    environment.notify("two");
    environment.run(&["notify", "--to", "worker-1", "not for the person"]);
    let input =
        json!({"session_id": "12345678", "cwd": environment.repository(), "prompt": "go"}).to_string();
    check_with_input(&mut environment.ringer(&["hook", "claude", "UserPromptSubmit"]), input.as_bytes());
    environment
}

#[test]
fn the_forms_of_a_status_line() {
    let quiet = TestEnvironment::new();
    for (form, expected) in [("plain", "\n"), ("claude", "\n"), ("tmux", ""), ("starship", "")] {
        assert_eq!(quiet.run(&["statusline", form]), expected, "{form}");
    }
    assert_eq!(read(&quiet.run(&["statusline", "waybar"]))["class"], "quiet");
    assert_eq!(read(&quiet.run(&["statusline", "--json"])), json!({"unread": 0, "agents": {}}));
    assert!(!quiet.home().exists(), "looking makes nothing");

    let environment = busy();
    for form in ["plain", "claude", "tmux", "starship"] {
        assert_eq!(environment.run(&["statusline", form]), "* 2 unread  1 working\n", "{form}");
    }
    assert_eq!(environment.run(&["statusline"]), "* 2 unread  1 working\n");
    let waybar =
        json!({"text": "* 2 unread  1 working", "tooltip": "2 unread notifications", "class": "unread"});
    assert_eq!(read(&environment.run(&["statusline", "waybar"])), waybar);
    let numbers = json!({"unread": 2, "agents": {"working": 1}});
    assert_eq!(read(&environment.run(&["statusline", "--json"])), numbers);
}

#[test]
fn claude_code_tells_its_limits_and_gets_its_line() {
    let environment = busy();
    let limits = json!({"model": {"display_name": "Opus"}, "rate_limits": {
        "five_hour": {"used_percentage": 91.5, "resets_at": 1_800_000_000},
        "seven_day": {"used_percentage": 12}}});
    for input in [limits.to_string(), String::new(), "not json".into(), "{}".into(), "[]".into()] {
        let line = check_with_input(&mut environment.ringer(&["statusline", "claude"]), input.as_bytes());
        assert_eq!(line, "* 2 unread  1 working\n", "{input}");
    }
    // More than is read of it, and bytes that are no text.
    for input in [vec![b' '; 1024 * 1024], vec![0xff; 1000]] {
        let mut command = environment.ringer(&["statusline", "claude"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It may have read enough before everything is written.
        let _ = child.stdin.take().unwrap().write_all(&input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "* 2 unread  1 working\n");
        assert!(output.status.success());
    }
}

#[test]
fn a_status_line_without_a_place_says_so() {
    let environment = TestEnvironment::new();
    let (out, err) = check(environment.ringer(&["statusline"]).env_remove("RINGER_HOME"), 73);
    assert!(out.is_empty() && err.contains("HOME is not set"), "{err}");
}
