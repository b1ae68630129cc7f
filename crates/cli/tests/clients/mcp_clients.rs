//! `ringer mcp` in the configuration of real clients.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use test_support::{Answer, Messages, Model, without_nonces};

use crate::environment::{ClientEnvironment, RINGER, SENDER};
use crate::responses::Responses;
use crate::scenarios::{BLOCK, TEXT};
use crate::session::Session;

/// The name of an agent whose client has no hooks.
const WORKER: &str = "worker";

/// The variables that Ringer needs. Clients give their servers few of their own.
fn variables(environment: &ClientEnvironment) -> Vec<(String, String)> {
    let command = environment.command(RINGER, &[]);
    let set = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let needed = set.filter(|(name, _)| name.starts_with("RINGER_") || name.starts_with("XDG_"));
    needed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Answers the question that is asked, as a person in another terminal does.
#[track_caller]
fn answer_question(environment: &ClientEnvironment, answer: &str) -> Value {
    let question = environment.notified("question");
    environment.ringer(&["answer", question["question_id"].as_str().expect("an id"), answer]);
    question
}

/// The model notifies, reads what waits, and asks, each with a tool of the server.
#[track_caller]
fn check_tools(environment: &ClientEnvironment, model: &Model, session: Session, agent: &str) {
    environment.ringer(&["notify", "--from", SENDER, "--to", agent, TEXT]);
    model.answer(Answer::tool(
        "mcp__ringer__notify",
        json!({ "message": "it builds", "kind": "complete", "title": "Build" }),
    ));
    let sent = environment.notified("complete");
    assert_eq!((&sent["from"], &sent["msg"]), (&json!(agent), &json!("it builds")), "{sent}");
    let next = model.request();
    assert_eq!(next.count_new("Sent as "), 1, "{}", next.news());
    assert_eq!(next.count_new(BLOCK), 1, "what waits comes with the result, once: {}", next.news());
    model.answer(Answer::tool(
        "mcp__ringer__ask",
        json!({ "question": "Which port?", "options": ["80", "8080"] }),
    ));
    let question = answer_question(environment, "2");
    assert_eq!(question["msg"], format!("Agent {agent} asks: Which port?"));
    let next = model.request();
    assert_eq!((next.count_new("8080"), next.count_new(TEXT)), (1, 0), "{}", next.news());
    model.answer(Answer::tool("mcp__ringer__inbox", json!({})));
    let next = model.request();
    assert_eq!(next.count_new("Nothing waits for you."), 1, "{}", next.news());
    model.answer(Answer::Text("all done"));
    let (printed, is_content) = session.end();
    assert!(is_content && printed.contains("all done"), "{printed}");
    assert_eq!(environment.complaints(), "");
}

fn claude(environment: &ClientEnvironment, model: &Model, agent: Option<&str>) -> Session {
    let name = agent.map(|agent| ("RINGER_AGENT".to_owned(), agent.to_owned()));
    let variables: serde_json::Map<String, Value> =
        variables(environment).into_iter().chain(name).map(|(name, value)| (name, value.into())).collect();
    let server = json!({ "command": RINGER, "args": ["mcp"], "env": variables });
    let config = json!({ "mcpServers": { "ringer": server } }).to_string();
    let arguments =
        ["-p", "do it", "--mcp-config", &config, "--strict-mcp-config", "--allowedTools", "mcp__ringer"];
    let session = environment.start("claude", &arguments);
    assert_eq!(model.request().count_new("do it"), 1);
    session
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn claude_code_without_hooks_notifies_reads_and_asks() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model).without_hooks();
    let session = claude(&environment, &model, Some(WORKER));
    check_tools(&environment, &model, session, WORKER);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_server_knows_the_agent_of_claude_codes_hooks() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let session = claude(&environment, &model, None);
    let agent = environment.agent();
    // Its hook after the tool and the result of the tool would both bring it: one of them does.
    check_tools(&environment, &model, session, &agent);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn codex_without_hooks_notifies_reads_and_asks() {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model).without_hooks();
    let path = environment.home().join(".codex/config.toml");
    let config = fs::read_to_string(&path).expect("its settings");
    let server = format!(
        "\n[mcp_servers.ringer]\ncommand = \"{RINGER}\"\nargs = [\"mcp\"]\n\n\
         [mcp_servers.ringer.env]\nRINGER_AGENT = \"{WORKER}\"\n"
    );
    let variables = variables(&environment).into_iter();
    let variables: String = variables.map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
    fs::write(&path, config + &server + &variables).expect("it is written");
    let session = environment.start("codex", &["exec", "--skip-git-repo-check", "do it"]);
    assert_eq!(model.request().count_new("do it"), 1);
    check_tools(&environment, &model, session, WORKER);
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_python_client_uses_every_tool_with_and_without_a_handshake() {
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let model = Model::new(&Messages);
        let environment = ClientEnvironment::for_claude(&model).without_hooks();
        environment.ringer(&["notify", "--from", SENDER, "--to", WORKER, TEXT]);
        let script = include_str!("mcp_client.py");
        let mut command = environment.command("python3", &["-c", script, mode, RINGER, "mcp"]);
        command.env("RINGER_AGENT", WORKER).env("PYTHONPATH", environment.python_packages());
        let session = environment.start_command(command);
        let line = |name: &str| -> Value {
            let line = session.line_with(&format!("{{\"{name}\": "));
            serde_json::from_str::<Value>(&line).expect("JSON")[name].clone()
        };
        assert_eq!(line("version"), version);
        assert_eq!(line("tools").as_array().map(Vec::len), Some(7));
        assert!(
            line("notify")["text"].as_str().is_some_and(|text| without_nonces(text).contains(BLOCK)),
            "{}",
            line("notify")
        );
        let wrong = json!({ "failed": true, "text": "unknown parameter \"text\" (known: key, kind, message, source, title, to)" });
        assert_eq!(line("wrong"), wrong);
        assert_eq!(line("progress"), json!([80.0, "waiting for the answer"]));
        answer_question(&environment, "80");
        assert_eq!(line("ask"), "80");
        assert_eq!(line("inbox"), json!({ "failed": false, "text": "Nothing waits for you." }));
        assert!(line("list")["text"].as_str().is_some_and(|text| text.contains("it builds")));
        assert_eq!(line("status")["failed"], false);
        let (printed, is_content) = session.end();
        assert!(is_content, "{printed}");
    }
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn the_inspector_lists_and_calls_the_tools() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model).without_hooks();
    environment.ringer(&["notify", "--from", SENDER, "--to", WORKER, TEXT]);
    let inspect = |arguments: &[&str]| -> Value {
        let mut command: Command = environment.command("mcp-inspector", &["--cli"]);
        for (name, value) in
            variables(&environment).into_iter().chain([("RINGER_AGENT".to_owned(), WORKER.to_owned())])
        {
            command.args(["-e", &format!("{name}={value}")]);
        }
        let output = command.args([RINGER, "mcp"]).args(arguments).output().expect("it runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&printed)
            .unwrap_or_else(|error| panic!("{error}: {printed}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(7), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "notify", "--tool-arg"];
    let sent = inspect(&[&call[..], &["message=it builds", "kind=complete"]].concat());
    let text = sent["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("Sent as ") && without_nonces(text).contains(BLOCK), "{text}");
    let sent = environment.notified("complete");
    assert_eq!((&sent["from"], &sent["msg"]), (&json!(WORKER), &json!("it builds")));
}
