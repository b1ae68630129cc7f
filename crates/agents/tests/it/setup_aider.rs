//! aider's settings: Ringer's lines in a person's file, and the command in them.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use ringer_agents::setup::{
    Client, CurrentFile, Entries, FileHistory, Format, OriginalContent, RingerProgram, SetupAction,
    SetupError, SetupScope, Target, plan,
};
use test_support::{make_program, started};

const PROGRAM: &str = "/opt/ringer é \"1\"/it's\\/ringer";

fn planned(action: &SetupAction, text: &str, history: FileHistory) -> Result<Option<String>, SetupError> {
    let path = PathBuf::from("/nowhere/.aider.conf.yml");
    let target = Target {
        client: Client::Aider,
        scope: SetupScope::User,
        format: Format::AiderConf,
        mcp: None,
        lock: None,
        path,
    };
    let file = CurrentFile { target, bytes: Some(text.as_bytes().to_vec()), history };
    let after = plan(Client::Aider, action, vec![file])?.changes.remove(0).after;
    Ok(after.map(|bytes| String::from_utf8(bytes).unwrap()))
}

fn set_up(program: &str, text: &str) -> Result<String, SetupError> {
    let action = SetupAction::Setup(RingerProgram::new(Path::new(program)).unwrap(), Entries::Hooks);
    planned(&action, text, FileHistory::default()).map(Option::unwrap)
}

fn removed(text: &str, untouched: bool, original: OriginalContent) -> Option<String> {
    planned(&SetupAction::Remove(Entries::All), text, FileHistory { untouched, original }).unwrap()
}

/// A line as in aider's sample file, or a little wilder.
const LINES: [&str; 14] = [
    "model: x",
    "dark-mode: true # mine",
    "read: [A.md, B.md]",
    "read:",
    "- C.md",
    "  - D.md",
    "lint-cmd: |",
    "  make lint # é",
    "",
    "   ",
    "# a comment",
    "#notifications: false",
    "## notifications-command: xxx # ringer-hook",
    "test-cmd: \"echo 'ringer notify' # ringer-hook\"",
];

/// Settings that a person may have made, or the beginning of a file.
const OTHERS: [&str; 6] =
    ["notifications: true", "\"notifications-command\": say", "{a: 1}", "---", " indented: x", "..."];

fn any_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![20 => prop::sample::select(&LINES[..]), 1 => prop::sample::select(&OTHERS[..])];
    let lines = prop::collection::vec(line, 0..8);
    (lines, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(mut lines, crlf, bom, start, last)| {
            if start {
                lines.insert(0, "---");
            }
            let newline = if crlf { "\r\n" } else { "\n" };
            let end = if last && !lines.is_empty() { newline } else { "" };
            format!("{}{}{end}", if bom { "\u{feff}" } else { "" }, lines.join(newline))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn setup_and_removal(text in any_text()) {
        let Ok(after) = set_up(PROGRAM, &text) else {
            // Refused; and removing changes nothing either.
            prop_assert_eq!(removed(&text, false, OriginalContent::Unknown), Some(text));
            return Ok(());
        };
        prop_assert!(!text.lines().any(|line| line.starts_with("notifications")), "{}", text);
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mine: Vec<&str> = after.split_inclusive('\n').filter(|line| line.contains(PROGRAM_WORD)).collect();
        prop_assert!(mine.len() == 1 && mine[0].ends_with(newline), "{}", after);
        prop_assert_eq!(&set_up(PROGRAM, &after).unwrap(), &after, "a second run changes nothing");
        let moved = set_up("/bin/ringer", &after).unwrap();
        prop_assert_eq!(&set_up(PROGRAM, &moved).unwrap(), &after, "only our lines are renewed");

        let bytes = || OriginalContent::Bytes(text.clone().into_bytes());
        for (untouched, original) in [(true, bytes()), (false, bytes()), (false, OriginalContent::Unknown)] {
            prop_assert_eq!(removed(&after, untouched, original), Some(text.clone()));
        }
        prop_assert_eq!(removed(&after, true, OriginalContent::Absent), None);
        let edited = format!("{after}{newline}vim: true{newline}");
        let left = removed(&edited, false, bytes()).unwrap();
        prop_assert_eq!(left, format!("{text}{newline}vim: true{newline}"));
    }
}

/// The part of the program's path that is in the line unchanged.
const PROGRAM_WORD: &str = "/opt/ringer ";

/// A text as a YAML parser reads it, as JSON. It runs Debian's Python, which `python3-yaml` is for.
#[track_caller]
fn read_as_yaml(text: &str) -> serde_json::Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.argv[1])))";
    let output = started("python3", Command::new("/usr/bin/python3").args(["-c", script, text]).output());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3-yaml is needed (cargo xtask test installs it): {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_reader_of_yaml_finds_the_settings_of_both() {
    for text in [
        "model: x\nread:\n- A.md\n",
        "# mine\r\n---\r\nmodel: x\r\nread: [A.md,\r\n]\r\n",
        "model: |\n  x\nread: [A.md]",
    ] {
        let after = read_as_yaml(&set_up(PROGRAM, text).unwrap());
        assert_eq!(after["notifications"], true, "{after}");
        assert!(
            after["notifications-command"].as_str().unwrap().contains("it'\\''s\\/ringer' notify"),
            "{after}"
        );
        assert_eq!(after["read"], serde_json::json!(["A.md"]));
        assert_eq!(after["model"].as_str().unwrap().trim(), "x");
    }
}

/// Runs the command as aider's documentation says: by the shell, when it waits.
fn waits(program: &str, name: Option<&str>) -> (String, String, bool) {
    let text = set_up(program, "").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("notifications-command: ")).unwrap();
    // These YAML escapes are the same in JSON.
    let line: String = serde_json::from_str(line.rsplit_once(" #").unwrap().0).unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]).stdin(Stdio::null()).env_remove("RINGER_AGENT");
    command.envs(name.map(|name| ("RINGER_AGENT", name)));
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

#[test]
fn the_command_sends_a_message_and_never_complains() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("it's \"a\" dir");
    let program = folder.join("ringer");
    fs::create_dir(&folder).unwrap();
    make_program(&program, "printf '%s|' \"$@\"; echo oops >&2");
    let program = program.to_str().unwrap();
    for (name, from) in [(None, "aider"), (Some("worker-1"), "worker-1")] {
        let said = format!("notify|--from|{from}|--type|waiting|aider waits for you|");
        assert_eq!(waits(program, name), (said, String::new(), true));
    }
    assert_eq!(waits("/nowhere at all/ringer", None), (String::new(), String::new(), true));
}
