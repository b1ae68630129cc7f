//! Copilot CLI: its setup, and one turn with inputs as version 1.0.102 sends them.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::TestEnvironment;
use crate::ringer::{check, json};
use crate::setup::UserHome;

const FILE: &str = ".copilot/hooks/ringer.json";

#[test]
fn it_is_offered_if_it_is_installed() {
    let user = UserHome::with_clients(&["claude", "copilot"]);
    let (out, _) = check(&mut user.setup(&["--dry-run"]), 0);
    assert!(out.contains(FILE) && out.contains("ringer-hook"), "{out}");
    assert_eq!(row(&doctor(&user), "copilot")["fix"], "ringer setup copilot");
    check(&mut user.setup(&["--yes"]), 0);
    assert!(user.read(FILE).contains("ringer-hook"));
    let what = row(&doctor(&user), "copilot")["what"].clone();
    assert!(what.as_str().is_some_and(|what| what.contains("has not called yet")), "{what}");
    check(&mut user.setup(&["--remove", "--yes"]), 0);
    assert!(!user.file(FILE).exists());
    let user = UserHome::with_clients(&["claude"]);
    assert!(!check(&mut user.setup(&["--dry-run"]), 0).0.contains(FILE));
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
fn hook(environment: &TestEnvironment, event: &str, input: &Value) -> String {
    let mut command = environment.ringer(&["hook", "copilot", event]);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().expect("the hook starts");
    child.stdin.take().expect("piped").write_all(input.to_string().as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_turn_takes_a_message_with_a_tool_and_is_held_back_once() {
    let environment = TestEnvironment::new();
    let place = environment.repository();
    let call = |event: &str, own: Value| {
        let mut input = json!({"sessionId": "0e4f7c12-9ab3-4c1d-8e2f-5a6b7c8d9e0f",
            "timestamp": 1_795_122_305_275_u64, "cwd": place});
        let all = input.as_object_mut().expect("an object");
        all.extend(own.as_object().expect("an object").clone());
        hook(&environment, event, &input)
    };
    let send = |text: &str| environment.run(&["notify", "--from", "w1", "--to", "copilot-0e4f7c12", text]);
    let after = || {
        call(
            "postToolUse",
            json!({"toolName": "bash", "toolArgs": {"command": "make"},
                "toolResult": {"resultType": "success", "textResultForLlm": "a lot"}}),
        )
    };
    let stop = |active: bool| {
        call(
            "agentStop",
            json!({"transcriptPath": "/t", "stopReason": "end_turn", "stop_hook_active": active}),
        )
    };
    assert_eq!(call("userPromptSubmitted", json!({"prompt": "go"})), "");
    send("one");
    assert_eq!(json(&after()), json!({"additionalContext": block("one")}));
    assert_eq!(after(), "", "once");
    send("two");
    assert_eq!(json(&stop(false)), json!({"decision": "block", "reason": block("two")}));
    let agents = || json(&environment.run(&["status", "--json"]))["agents"].clone();
    assert_eq!(agents()[0]["state"], "working");
    let subagent = json!({"sessionId": "55e83cb0-c430-4ee9-87ad-b8cdb1db05bb", "stopReason": "end_turn",
        "agentId": "55e83cb0-c430-4ee9-87ad-b8cdb1db05bb", "agentType": "explore",
        "parentAgentId": "0e4f7c12-9ab3-4c1d-8e2f-5a6b7c8d9e0f"});
    let mut of_subagent = subagent.clone();
    of_subagent["sessionId"] = json!("4f61b975-74ce-4986-ada2-76af7bd851e3");
    of_subagent["parentAgentId"] = subagent["sessionId"].clone();
    for input in [subagent, of_subagent] {
        assert_eq!(call("agentStop", input), "");
    }
    assert_eq!(agents()[0]["state"], "working", "{}", agents());
    assert_eq!(agents().as_array().map(Vec::len), Some(2), "the sender and the session: {}", agents());
    assert_eq!(stop(true), "");
    assert_eq!(agents()[0]["state"], "done");
    let log = environment.run(&["log"]);
    assert_eq!(log.matches("completed").count(), 1, "{log}");
}

fn block(text: &str) -> String {
    format!("<notification source=\"agent:w1\">\n{text}\n</notification>")
}
