//! Cursor, Copilot CLI and aider, which were never run: what their documents say, played by hand.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::TestEnvironment;
use crate::ringer::{check, json};
use crate::setup::UserHome;

const FILES: [(&str, &str); 3] = [
    ("cursor-agent", ".cursor/hooks.json"),
    ("copilot", ".copilot/hooks/ringer.json"),
    ("aider", ".aider.conf.yml"),
];

#[test]
fn only_what_is_installed_is_offered_and_it_is_said_to_be_untested() {
    for (program, file) in FILES {
        let user = UserHome::with_clients(&["claude", program]);
        let (out, err) = check(&mut user.setup(&["--dry-run"]), 0);
        assert!(out.contains(file) && out.contains("ringer-hook"), "{out}");
        assert_eq!(err.matches("experimental").count(), 1, "{err}");
        for (_, other) in FILES.iter().filter(|(other, _)| *other != program) {
            assert!(!out.contains(other), "{out}");
        }
        check(&mut user.setup(&["--yes"]), 0);
        assert!(user.read(file).contains("ringer-hook"));
        let (out, err) = check(&mut user.setup(&["--yes"]), 0);
        assert!(out.contains("Already set up") && !err.contains("experimental"), "{out}{err}");
        check(&mut user.setup(&["--remove", "--yes"]), 0);
        assert!(!user.file(file).exists());
    }
    let user = UserHome::with_clients(&["claude"]);
    let (out, err) = check(&mut user.setup(&["--dry-run"]), 0);
    assert!(!err.contains("experimental") && FILES.iter().all(|(_, file)| !out.contains(file)), "{out}{err}");
}

#[test]
fn a_notification_command_of_the_person_stays() {
    let user = UserHome::with_clients(&["claude", "aider"]);
    let mine = "model: x\nnotifications-command: say done\n";
    user.write(".aider.conf.yml", mine);
    let (_, err) = check(&mut user.setup(&["aider", "--yes"]), 78);
    assert!(err.contains("already sets notifications-command") && err.contains("ringer notify"), "{err}");
    // It does not keep the others back.
    let (_, err) = check(&mut user.setup(&["--yes"]), 0);
    assert!(err.contains("already sets notifications-command"), "{err}");
    assert!(user.read(".claude/settings.json").contains("ringer-hook"));
    assert_eq!(user.read(".aider.conf.yml"), mine);
    let rows = doctor(&user);
    assert_eq!(row(&rows, "aider")["verdict"], "warn", "{rows:?}");
}

#[test]
fn the_doctor_says_which_are_untested() {
    let user = UserHome::with_clients(&["cursor", "copilot", "aider"]);
    let rows = doctor(&user);
    for client in ["cursor", "copilot", "aider"] {
        let row = row(&rows, client);
        assert_eq!(
            (&row["verdict"], &row["fix"]),
            (&json!("warn"), &json!(format!("ringer setup {client}")))
        );
    }
    check(&mut user.setup(&["--yes"]), 0);
    let rows = doctor(&user);
    for client in ["cursor", "copilot", "aider"] {
        let row = row(&rows, client);
        // aider reports no events, so there is no call to wait for.
        assert_eq!(row["verdict"], if client == "aider" { "ok" } else { "warn" });
        let what = row["what"].as_str().expect("a text");
        assert!(what.contains("; experimental (written from its docs"), "{what}");
    }
}

#[track_caller]
pub(crate) fn doctor(user: &UserHome) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
    command.args(["doctor", "--json"]).env_clear().envs(user.variables());
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    json(&String::from_utf8_lossy(&output.stdout))["rows"].as_array().expect("rows").clone()
}

#[track_caller]
pub(crate) fn row<'a>(rows: &'a [Value], part: &str) -> &'a Value {
    rows.iter().find(|row| row["part"] == part).expect(part)
}

#[track_caller]
fn hook(environment: &TestEnvironment, client: &str, event: &str, input: &Value) -> String {
    let mut command = environment.ringer(&["hook", client, event]);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().expect("the hook starts");
    child.stdin.take().expect("piped").write_all(input.to_string().as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// One turn: a prompt, a tool whose result takes a message, and an end that the next message holds back once.
#[track_caller]
fn turn(client: &str, agent: &str, common: &Value, [prompt, after, end]: [(&str, Value); 3]) -> [String; 2] {
    let environment = TestEnvironment::new();
    let place = environment.repository();
    let call = |(event, own): &(&str, Value)| {
        let mut input = common.clone();
        let all = input.as_object_mut().expect("an object");
        all.extend(own.as_object().expect("an object").clone());
        // Cursor says where it is in the one, Copilot CLI in the other.
        let (name, value) =
            if client == "cursor" { ("workspace_roots", json!([place])) } else { ("cwd", json!(place)) };
        all.insert(name.to_owned(), value);
        hook(&environment, client, event, &input)
    };
    let send = |text: &str| environment.run(&["notify", "--from", "w1", "--to", agent, text]);
    assert_eq!(call(&prompt), "");
    send("one");
    let entered = call(&after);
    assert_eq!(call(&after), "", "once");
    send("two");
    let held_back = call(&end);
    let state = || json(&environment.run(&["status", "--json"]))["agents"][0]["state"].clone();
    assert_eq!(state(), "working");
    assert_eq!(call(&end), "");
    assert_eq!(state(), "done");
    let log = environment.run(&["log"]);
    assert_eq!(log.matches("completed").count(), 1, "{log}");
    [entered, held_back]
}

fn block(text: &str) -> String {
    format!("<notification source=\"agent:w1\">\n{text}\n</notification>")
}

#[test]
fn a_turn_of_cursor() {
    let common = json!({"conversation_id": "cdefee2d-2727-4b73-bf77-d9d830f31d2a", "generation_id": "g1",
        "cursor_version": "1.7.2", "user_email": null, "transcript_path": null});
    let tool = json!({"tool_name": "Shell", "tool_input": {"command": "npm test"}, "tool_output": "{}",
        "tool_use_id": "abc123", "cwd": "/project", "duration": 5432});
    let steps = [
        ("beforeSubmitPrompt", json!({"prompt": "go", "attachments": []})),
        ("postToolUse", tool),
        ("stop", json!({"status": "completed", "loop_count": 0})),
    ];
    let [entered, held_back] = turn("cursor", "cursor-30f31d2a", &common, steps);
    assert_eq!(json(&entered), json!({"additional_context": block("one")}));
    assert_eq!(json(&held_back), json!({"followup_message": block("two")}));
}

#[test]
fn a_turn_of_copilot() {
    let common =
        json!({"sessionId": "0e4f7c12-9ab3-4c1d-8e2f-5a6b7c8d9e0f", "timestamp": 1_763_000_000_000_u64});
    let tool = json!({"toolName": "bash", "toolArgs": {"command": "make"},
        "toolResult": {"resultType": "success", "textResultForLlm": "a lot"}});
    let steps = [
        ("userPromptSubmitted", json!({"prompt": "go"})),
        ("postToolUse", tool),
        ("agentStop", json!({"transcriptPath": "/t", "stopReason": "end_turn", "stop_hook_active": false})),
    ];
    let [entered, held_back] = turn("copilot", "copilot-7c8d9e0f", &common, steps);
    assert_eq!(json(&entered), json!({"additionalContext": block("one")}));
    assert_eq!(json(&held_back), json!({"decision": "block", "reason": block("two")}));
}
