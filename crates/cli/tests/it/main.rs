//! The program as people and scripts use it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod background;
mod half_printed;
mod harness;
mod home;
mod mcp_client;
mod pty;
mod ringer;
mod snapshot;
mod stdio_client;
mod trace;

mod ask;
mod channels;
mod completions;
mod copilot;
mod doctor;
mod durable;
mod faults;
mod found_by_path;
mod help;
mod hook;
mod hook_spool;
mod hub;
mod idle_hook;
mod lead_statusline;
mod listen;
mod log_status_nuke;
mod mcp_proxy;
mod mcp_server;
mod notify_format;
mod panes;
mod progress;
mod race_windows;
mod relay;
mod run;
mod session_nonce;
mod setup;
mod setup_mcp;
mod setup_truth;
mod snapshots;
mod term_detect;
mod term_notify;
mod term_probe;
mod term_scan;
mod trust_config;
mod uninstall;
