//! The program as people and scripts use it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod background;
mod half_printed;
mod home;
mod pty;
mod ringer;
mod snapshot;
mod trace;

mod ask;
mod completions;
mod doctor;
mod durable;
mod faults;
mod from_documents;
mod help;
mod hook;
mod hook_spool;
mod hub;
mod idle_hook;
mod lead_statusline;
mod listen;
mod log_status_nuke;
mod notify_format;
mod progress;
mod race_windows;
mod run;
mod setup;
mod setup_truth;
mod snapshots;
mod term_detect;
mod term_notify;
mod term_probe;
mod term_scan;
mod trust_config;
mod uninstall;
