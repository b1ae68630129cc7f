//! The page about the footer: it names every source, and its examples do what it says.

use std::path::Path;
use std::process::Command;

use ringer_core::toast::source_names;
use serde_json::Value;

use super::environment::HubEnvironment;
use crate::ringer::check;

const PAGE: &str = include_str!("../../../../../docs/footer.md");

fn examples() -> impl Iterator<Item = &'static str> {
    PAGE.lines().filter(|line| line.starts_with("ringer observe "))
}

/// The text of an example, `None` if its condition has ended.
fn text(example: &str) -> Option<String> {
    let argument = example.splitn(4, ' ').nth(3).expect("an argument");
    match argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(object) => {
            let object: Value = serde_json::from_str(object).expect("JSON");
            object["text"].as_str().map(str::to_owned)
        }
        None => Some(argument.trim_matches('"').to_owned()),
    }
}

#[test]
fn it_names_every_source_and_no_other() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut named: Vec<&str> = rows.filter(|(_, rest)| rest.contains(" | ")).map(|(name, _)| name).collect();
    let mut known: Vec<&str> = source_names().collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}

#[test]
fn each_example_is_shown() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let status = || environment.json(&["hub", "status", "--json"]);
    let directory = Path::new(env!("CARGO_BIN_EXE_ringer")).parent().expect("a directory");
    let mut search_path = directory.as_os_str().to_owned();
    search_path.push(":/usr/bin:/bin");
    assert_eq!(examples().count(), 11);
    for example in examples() {
        let mut shell: Command = environment.program("/bin/sh");
        shell.args(["-c", example]).env("PATH", &search_path);
        check(&mut shell, 0);
        let status = status();
        if example.contains("ide-status") {
            assert_eq!(status["indicators"]["ide-status"], "VS Code", "{example}");
            continue;
        }
        // The one before it is gone: what is shown is of this example.
        assert_eq!(status["toast"].as_str().map(str::to_owned), text(example), "{example}");
        let keys = ["plugin-autoupdate", "plugin-install-sql", "mcp-connectivity", "auto-mode-unavailable"];
        for key in keys.into_iter().chain(["npm-deprecation", "install-msg-2.0"]) {
            environment.run(&["toast", "--remove", key]);
        }
    }
}

#[test]
fn connecting_an_agent_is_told() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    check(environment.ringer(&["setup", "claude", "--yes"]).env("HOME", environment.base.path()), 0);
    assert_eq!(environment.json(&["hub", "status", "--json"])["toast"], "claude is connected");
}
