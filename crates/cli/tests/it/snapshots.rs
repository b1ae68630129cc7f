//! Help, errors and reports, word for word. A hub's part of them is in `hub/snapshots.rs`.

use std::fs;

use crate::home::TestEnvironment;
use crate::ringer::{json, ringer};
use crate::snapshot::check_command;

/// Every command that has help, and the subcommands.
const COMMANDS: [&str; 39] = [
    "",
    "acknowledge",
    "ask",
    "clear",
    "completions",
    "config",
    "config check",
    "config schema",
    "config show",
    "doctor",
    "hook",
    "hub",
    "hub start",
    "hub status",
    "hub stop",
    "jump",
    "lead",
    "list",
    "listen",
    "log",
    "man",
    "notify",
    "nuke",
    "observe",
    "progress",
    "questions",
    "read",
    "setup",
    "status",
    "statusline",
    "term",
    "term detect",
    "term notify",
    "term scan",
    "toast",
    "trust",
    "unread",
    "watch",
    "why",
];

#[test]
fn help() {
    let environment = TestEnvironment::new();
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().collect();
        let name = format!("help-{}", words.join("-"));
        check_command(name.trim_end_matches('-'), ringer(&words).arg("--help"), environment.path());
    }
    check_command("help-short", &mut ringer(&["-h"]), environment.path());
}

#[test]
fn help_as_a_command_is_the_same() {
    let help = |arguments: &[&str]| ringer(arguments).output().expect("it runs").stdout;
    assert_eq!(help(&["help"]), help(&["--help"]));
    assert_eq!(help(&["help", "term", "scan"]), help(&["term", "scan", "--help"]));
}

#[test]
fn errors() {
    let environment = TestEnvironment::new();
    for (name, arguments) in [
        ("command", &["bogus"][..]),
        ("option", &["list", "--jsno"]),
        ("kind", &["notify", "--type", "done", "x"]),
        ("span", &["notify", "--ttl", "5y", "x"]),
        ("empty", &["notify", ""]),
        ("sender", &["notify", "--from", "a\nb", "x"]),
        ("since", &["log", "--since", "foo"]),
        ("nothing-to-read", &["read"]),
        ("nothing-to-clear", &["clear"]),
        ("question", &["acknowledge", "q-1-000000"]),
        ("message", &["why", "01997a3e-0a1b-7c2d-8e3f-0123456789ab"]),
        ("agent", &["why", "--agent", "nobody-1"]),
        ("client", &["setup", "emacs"]),
        ("confirmation", &["nuke"]),
        ("no-hub", &["jump"]),
        ("no-terminal", &["term", "notify", "hello"]),
        ("channel", &["term", "notify", "--channel", "fax", "hello"]),
        ("percent", &["progress", "101"]),
        ("no-file", &["term", "scan", "/nonexistent/file"]),
    ] {
        let mut command = environment.ringer(arguments);
        check_command(&format!("error-{name}"), command.env("HOME", environment.path()), environment.path());
    }
    let config = environment.path().join("config.toml");
    fs::write(&config, "[notify]\nrign = true\npopup = 3\n").expect("a file");
    check_command(
        "error-config",
        environment.ringer(&["config", "check"]).env("RINGER_CONFIG", config),
        environment.path(),
    );
}

#[test]
fn reports_without_a_hub() {
    let environment = TestEnvironment::new();
    let directory = environment.path();
    check_command("list-empty", &mut environment.ringer(&["list"]), directory);
    check_command("questions-empty", &mut environment.ringer(&["questions"]), directory);
    check_command("lead", &mut environment.ringer(&["lead"]), directory);
    let sent = environment.run(&["notify", "--json", "--from", "worker-1", "--title", "Build", "it is green"]);
    environment.run(&["ask", "--from", "worker-2", "Deploy now?"]);
    environment.run(&["listen", "--timeout", "0", "--max", "1"]);
    let id = json(&sent)["id"].as_str().expect("an id").to_owned();
    check_command("list", &mut environment.ringer(&["list"]), directory);
    check_command("questions", &mut environment.ringer(&["questions"]), directory);
    check_command("status", &mut environment.ringer(&["status"]), directory);
    check_command("why-without-hub", &mut environment.ringer(&["why", &id]), directory);
    check_command("hub-status-stopped", &mut environment.ringer(&["hub", "status"]), directory);
    check_command("welcome", environment.ringer(&[""; 0]).env("TERM", "xterm-kitty"), directory);
}

/// The desktop of macOS needs no session bus, so its row differs.
#[cfg(not(target_os = "macos"))]
#[test]
fn doctor() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let config = environment.path().join("config.toml");
    fs::write(&config, "[notify]\ncommand = [\"/nowhere/lamp\"]\n").expect("a file");
    let mut command = environment.ringer(&["doctor"]);
    check_command("doctor", command.env("RINGER_CONFIG", config).env("TERM", "xterm"), environment.path());
}
