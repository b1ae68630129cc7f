//! Real clients, offline: Claude Code and Codex with Ringer's hooks, against stand-ins for their models' servers.
//!
//! `cargo xtask test --clients` installs the clients and runs this. Without `RINGER_CLIENTS`, the folder in which they
//! are, every test says that it is skipped.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod follower;
mod messages;
mod model;
mod processes;
mod responses;
mod session;
mod terminal;
mod world;

mod claude_headless;
mod claude_in_terminal;
mod codex_exec;
