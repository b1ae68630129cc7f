//! Real clients, offline: Claude Code, Codex, Gemini CLI, opencode and Copilot CLI with Ringer's hooks or its MCP server, against stand-ins
//! for their models' servers; and the MCP clients for Python and of the inspector.
//!
//! `cargo xtask test --clients` installs the clients, names their folder in `RINGER_CLIENTS` and runs these tests; every
//! other run shows them as ignored.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod chat_completions;
mod environment;
mod follower;
mod generate_content;
mod hosts;
mod opencode_server;
mod processes;
mod responses;
mod sandboxed;
mod scenarios;
mod session;
mod terminal;

mod answer_times;
mod claude_answers;
mod claude_headless;
mod claude_in_terminal;
mod claude_sessions;
mod claude_under_hosts;
mod codex_answers;
mod codex_exec;
mod codex_in_terminal;
mod codex_left;
mod codex_sessions;
mod codex_under_hosts;
mod copilot_headless;
mod copilot_in_terminal;
mod copilot_sessions;
mod doctor;
mod gemini_headless;
mod gemini_in_terminal;
mod mcp_clients;
mod mcp_list;
mod opencode_run;
mod opencode_serve;
mod turn_times;
