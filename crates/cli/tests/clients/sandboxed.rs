//! Agents whose shell is in the sandbox of their client, with the settings that docs/agents.md names.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::{Answer, Messages, Model, until};

use crate::environment::ClientEnvironment;
use crate::responses::Responses;

/// A home whose hub has made the drop box, and the path of the drop box.
fn drop_box(environment: &ClientEnvironment) -> PathBuf {
    environment.ringer(&["hub", "start"]);
    let drop = environment.state().join("drop");
    until("the hub has made the drop box", || drop.is_dir());
    drop
}

/// What the model types: it notifies, and tries to write beside the drop box.
fn command(environment: &ClientEnvironment) -> String {
    let (ringer, home) = (env!("CARGO_BIN_EXE_ringer"), environment.state());
    format!("{ringer} notify 'from the sandbox'; touch {}/escaped || echo forbidden", home.display())
}

#[track_caller]
fn check_listed(environment: &ClientEnvironment) {
    let find = || -> Option<Value> {
        let rows: Vec<Value> = serde_json::from_str(&environment.ringer(&["list", "--json"])).expect("JSON");
        rows.into_iter().find(|row| row["body"] == "from the sandbox")
    };
    until("it is listed", || find().is_some());
    let row = find().expect("it is listed");
    assert_eq!(row["from"], "unverified", "{row}");
    assert!(!fs::exists(environment.state().join("escaped")).expect("the state directory can be read"));
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn claude_code_notifies_from_its_sandbox() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let drop = drop_box(&environment);
    let sandbox = json!({ "enabled": true, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": false,
        "filesystem": { "allowWrite": [drop] } });
    let folder = environment.project().join(".claude");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("settings.json"), json!({ "sandbox": sandbox }).to_string()).expect("a file");
    let session = environment.start("claude", &["-p", "do it", "--allowedTools", "Bash"]);
    assert_eq!(model.request().count_new("do it"), 1);
    model.answer(Answer::tool("Bash", json!({ "command": command(&environment), "description": "Notify" })));
    let result = model.request();
    assert_eq!(result.count_new("queued: "), 1, "{}", result.news());
    assert_eq!(result.count_new("forbidden"), 1, "{}", result.news());
    model.answer(Answer::Text("all done"));
    session.end();
    check_listed(&environment);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn codex_notifies_from_its_sandbox() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let drop = drop_box(&environment);
    // This test keeps its state directory below /tmp, which this sandbox makes writable by default.
    let settings = [
        format!("sandbox_workspace_write.writable_roots=[{:?}]", drop.display().to_string()),
        "sandbox_workspace_write.exclude_slash_tmp=true".to_owned(),
        "sandbox_workspace_write.exclude_tmpdir_env_var=true".to_owned(),
    ];
    let mut arguments = vec![
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-hook-trust",
        "--sandbox",
        "workspace-write",
    ];
    for setting in &settings {
        arguments.extend(["-c", setting]);
    }
    arguments.push("do it");
    let session = environment.start("codex", &arguments);
    assert_eq!(model.request().count_new("do it"), 1);
    model.answer(Answer::tool("exec_command", json!({ "cmd": command(&environment) })));
    let result = model.request();
    assert_eq!(result.count_new("queued: "), 1, "{}", result.news());
    assert_eq!(result.count_new("forbidden"), 1, "{}", result.news());
    model.answer(Answer::Text("all done"));
    session.end();
    check_listed(&environment);
}
