//! Real clients, offline: Claude Code, Codex, Gemini CLI and opencode with Ringer's hooks, against stand-ins for their
//! models' servers.
//!
//! `cargo xtask test --clients` installs the clients, names their folder in `RINGER_CLIENTS` and runs these tests; every
//! other run shows them as ignored.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod chat_completions;
mod environment;
mod follower;
mod generate_content;
mod messages;
mod model;
mod opencode_server;
mod processes;
mod responses;
mod scenarios;
mod session;
mod terminal;

mod claude_answers;
mod claude_headless;
mod claude_in_terminal;
mod codex_answers;
mod codex_exec;
mod codex_in_terminal;
mod doctor;
mod gemini_headless;
mod opencode_run;
mod opencode_serve;
