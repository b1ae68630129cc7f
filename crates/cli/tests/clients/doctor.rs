//! What doctor says of hooks that a client does not run, and what the client really does.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::{Answer, Messages, Model};

use crate::environment::ClientEnvironment;
use crate::responses::Responses;

#[track_caller]
fn check_row(environment: &ClientEnvironment, verdict: &str, what: &str) {
    let row = environment.doctor();
    let has = row["what"].as_str().is_some_and(|text| text.contains(what));
    assert!(row["verdict"] == verdict && has, "{row}");
}

/// One turn of Claude Code.
fn turn(environment: &ClientEnvironment, model: &Model) {
    let session = environment.start("claude", &["-p", "do it"]);
    model.request();
    model.answer(Answer::Text("done"));
    assert!(session.end().1);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn claude_code_runs_no_hook_of_a_file_with_a_comment() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let path = environment.home().join(".claude/settings.json");
    let plain = fs::read_to_string(&path).expect("settings");
    check_row(&environment, "warn", "has not called yet");
    for (change, verdict, what) in [
        (plain.replacen('{', "{ // mine\n", 1), "broken", "does not read"),
        (plain.replacen('{', "{ \"disableAllHooks\": true,", 1), "warn", "disableAllHooks is true"),
    ] {
        fs::write(&path, change).expect("a file");
        turn(&environment, &model);
        assert!(environment.kinds().is_empty(), "no hook ran");
        check_row(&environment, verdict, what);
    }
    fs::write(&path, plain).expect("a file");
    turn(&environment, &model);
    assert_eq!(environment.kinds(), ["complete"]);
    check_row(&environment, "ok", "hooks; called ");
}

/// What Codex says of each hook: its key and its hash.
fn hooks(environment: &ClientEnvironment) -> Vec<(String, String, String)> {
    let mut command = environment.command("codex", &["app-server"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("codex");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ask = |id: u32, method: &str, params: Value| -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").expect("it reads");
        let answers = output.by_ref().map_while(Result::ok);
        let mut answers = answers.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        answers.find(|answer| answer["id"] == id).expect("an answer")["result"].clone()
    };
    ask(1, "initialize", json!({ "clientInfo": { "name": "test", "version": "1" } }));
    let listed = ask(2, "hooks/list", json!({ "cwds": [environment.project()] }));
    child.kill().and_then(|()| child.wait()).expect("it ends");
    let text = |hook: &Value, name: &str| hook[name].as_str().expect("a text").to_owned();
    let hooks = listed["data"][0]["hooks"].as_array().expect("hooks").iter();
    hooks.map(|hook| (text(hook, "key"), text(hook, "currentHash"), text(hook, "trustStatus"))).collect()
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn codex_and_doctor_agree_on_what_is_trusted() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let found = hooks(&environment);
    assert!(found.len() == 7 && found.iter().all(|(.., status)| status == "untrusted"), "{found:?}");
    check_row(&environment, "warn", "7 not trusted yet");
    let path = environment.home().join(".codex/config.toml");
    let config = fs::read_to_string(&path).expect("a file");
    let trust = |hash: &dyn Fn(&str) -> String| {
        let states = found.iter().map(|(key, current, _)| {
            format!("[hooks.state.\"{key}\"]\ntrusted_hash = \"{}\"\n", hash(current))
        });
        fs::write(&path, format!("{config}\n{}", states.collect::<String>())).expect("a file");
    };
    trust(&str::to_owned);
    assert!(hooks(&environment).iter().all(|(.., status)| status == "trusted"));
    check_row(&environment, "warn", "has not called yet");
    trust(&|_| "sha256:00".to_owned());
    assert!(hooks(&environment).iter().all(|(.., status)| status == "modified"));
    check_row(&environment, "warn", "7 changed since they were trusted");
}
