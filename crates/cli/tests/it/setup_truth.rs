//! Setup and doctor say so when a client does not run what is set up.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json as value};

use crate::copilot::{doctor, row};
use crate::ringer::{check, check_with_input, json};
use crate::setup::UserHome;

#[track_caller]
fn check_row(user: &UserHome, part: &str, verdict: &str, what: &str, fix: &str) {
    let rows = doctor(user);
    let row = row(&rows, part);
    let has = |name: &str, text: &str| row[name].as_str().unwrap_or_default().contains(text);
    assert!(row["verdict"] == verdict && has("what", what) && has("fix", fix), "{row}");
}

#[test]
fn claude_code_does_not_read_a_file_with_comments() {
    let user = UserHome::with_clients(&["claude"]);
    user.write(".claude/settings.json", "{\n  // mine\n  \"model\": \"opus\"\n}\n");
    let (_, err) = check(&mut user.setup(&["--yes"]), 0);
    let path = user.file(".claude/settings.json").display().to_string();
    let what = format!("Claude Code does not read {path}: line 2, column 3: a comment");
    assert!(err.contains(&what) && err.contains("wants plain JSON"), "{err}");
    check_row(&user, "claude", "broken", &what, "take it out of");
    let report = json(&check(&mut user.setup(&["--json"]), 0).0);
    assert_eq!(report["in_the_way"], value!([what]));

    let plain = user.read(".claude/settings.json").replace("  // mine\n", "");
    user.write(".claude/settings.json", &plain);
    let (out, err) = check(&mut user.setup(&["--yes"]), 0);
    assert!(out.contains("Already set up") && !err.contains("does not read"), "{out}{err}");
    check_row(&user, "claude", "warn", "12 hooks; it has not called yet", "start claude once");
    let mut hook = user.environment.ringer(&["hook", "claude", "Stop"]);
    let stop =
        value!({ "hook_event_name": "Stop", "session_id": "0123456789", "cwd": user.environment.path() });
    check_with_input(&mut hook, stop.to_string().as_bytes());
    check_row(&user, "claude", "ok", "12 hooks; called ", "");

    let mut settings: Value = serde_json::from_str(&plain).expect("JSON");
    settings["disableAllHooks"] = true.into();
    user.write(".claude/settings.json", &settings.to_string());
    let (_, err) = check(&mut user.setup(&["--yes"]), 0);
    assert!(err.contains("disableAllHooks is true"), "{err}");
    check_row(&user, "claude", "warn", "disableAllHooks is true", "set it to false");
}

#[test]
fn a_session_of_claude_code_that_runs_and_never_called_is_told() {
    let user = UserHome::with_clients(&["claude"]);
    check(&mut user.setup(&["--yes"]), 0);
    let file = format!(".claude/sessions/{}.json", std::process::id());
    user.write(&file, "{\"sessionId\": \"0123456789\", \"status\": \"idle\"}");
    check_row(&user, "claude", "warn", "it has not called yet", "start claude once");
    // Its first hook has had its time.
    let long_ago = SystemTime::now() - Duration::from_mins(1);
    File::options()
        .write(true)
        .open(user.file(&file))
        .and_then(|file| file.set_modified(long_ago))
        .expect("a time");
    check_row(&user, "claude", "warn", "a session that runs has never called", "start it again");
    let mut hook = user.environment.ringer(&["hook", "claude", "Stop"]);
    let stop = value!({ "session_id": "0123456789", "cwd": user.environment.path() });
    check_with_input(&mut hook, stop.to_string().as_bytes());
    check_row(&user, "claude", "ok", "12 hooks; called ", "");
    // The process of the other one is gone.
    user.write(".claude/sessions/999999999.json", "{\"sessionId\": \"another\"}");
    let other = File::options().write(true).open(user.file(".claude/sessions/999999999.json"));
    other.and_then(|file| file.set_modified(long_ago)).expect("a time");
    check_row(&user, "claude", "ok", "12 hooks; called ", "");
}

/// The settings of the repository in which doctor runs count there.
#[test]
fn a_repository_can_switch_hooks_off() {
    let user = UserHome::with_clients(&["claude"]);
    check(&mut user.setup(&["--yes"]), 0);
    let directory = user.environment.repository().join(".claude");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("settings.local.json"), "{\"disableAllHooks\": true}").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
    command.args(["doctor", "--json"]).env_clear().envs(user.variables());
    command.current_dir(user.environment.repository()).stdin(Stdio::null());
    let (out, _) = check(&mut command, 0);
    let rows = json(&out)["rows"].as_array().expect("rows").clone();
    let what = row(&rows, "claude")["what"].as_str().expect("a text").to_owned();
    assert!(what.contains("settings.local.json, so Claude Code does not run them"), "{what}");
}

#[test]
fn codex_runs_only_what_is_trusted() {
    let user = UserHome::with_clients(&["codex"]);
    let (_, err) = check(&mut user.setup(&["--yes"]), 0);
    assert_eq!(err.matches("trust").count(), 1, "once is enough: {err}");
    check_row(&user, "codex", "warn", "7 not trusted yet", "type /hooks");
    let (_, err) = check(&mut user.setup(&["--yes"]), 0);
    assert!(err.contains("Codex does not run all of its 7 hooks"), "{err}");
}
