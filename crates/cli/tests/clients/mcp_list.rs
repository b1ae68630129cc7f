//! `ringer setup --mcp`, and what the clients say of the MCP servers that they know.

use std::fs;

use test_support::{Answer, Messages, Model, until_within};

use crate::chat_completions::ChatCompletions;
use crate::environment::{ClientEnvironment, DEADLINE, RINGER};
use crate::generate_content::GenerateContent;
use crate::responses::Responses;

/// What a client lists.
#[track_caller]
fn listed(environment: &ClientEnvironment, client: &str) -> String {
    environment.start(client, &["mcp", "list"]).end().0
}

/// The server is listed in these words while it is registered: all but Codex start it for that. A removal leaves the bytes from before, if the client has not written
/// since.
#[track_caller]
fn check(environment: &ClientEnvironment, client: &str, file: &str, words: &str) {
    let path = environment.home().join(file);
    let before = fs::read(&path).expect("settings");
    environment.ringer(&["setup", client, "--mcp", "--yes"]);
    assert_ne!(fs::read(&path).expect("settings"), before);
    environment.ringer(&["setup", client, "--mcp", "--remove", "--yes"]);
    assert_eq!(fs::read(&path).expect("settings"), before);

    assert!(!listed(environment, client).contains("ringer"));
    environment.ringer(&["setup", client, "--mcp", "--yes"]);
    let list = listed(environment, client);
    assert!(list.contains("ringer") && list.contains(RINGER) && list.contains(words), "{list}");
    environment.ringer(&["setup", client, "--mcp", "--remove", "--yes"]);
    let list = listed(environment, client);
    assert!(!list.contains("ringer"), "{list}");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn claude_code_lists_the_server() {
    let model = Model::new(&Messages);
    check(&ClientEnvironment::for_claude(&model), "claude", ".claude.json", "✔ Connected");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn codex_lists_the_server() {
    let model = Model::new(&Responses);
    check(&ClientEnvironment::for_codex(&model), "codex", ".codex/config.toml", "enabled");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn gemini_lists_the_server() {
    let model = Model::new(&GenerateContent);
    check(&ClientEnvironment::for_gemini(&model), "gemini", ".gemini/settings.json", "(stdio) - Connected");
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn opencode_lists_the_server() {
    let model = Model::new(&ChatCompletions);
    check(&ClientEnvironment::for_opencode(&model), "opencode", ".config/opencode/opencode.json", "✓ ringer");
}

/// Claude Code has its own state in the same file and writes it several times while it starts.
#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_of_claude_code_that_runs_keeps_the_server() {
    let model = Model::new(&Messages);
    let environment = ClientEnvironment::for_claude(&model);
    let path = environment.home().join(".claude.json");
    let mut terminal = environment.start_in_terminal("claude", &["do it"]);
    // It has just started.
    model.request();
    environment.ringer(&["setup", "claude", "--mcp", "--yes"]);
    let written = fs::read_to_string(&path).expect("settings");
    model.answer(Answer::Text("done"));
    environment.notified("complete");
    terminal.press("\x04");
    terminal.press("\x04");
    let mut left = String::new();
    until_within(DEADLINE, "it writes the file", || {
        left = fs::read_to_string(&path).expect("settings");
        left != written
    });
    let state: serde_json::Value = serde_json::from_str(&left).expect("JSON");
    assert_eq!(state["mcpServers"]["ringer"]["command"], RINGER);
}
