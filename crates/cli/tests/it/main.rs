//! The program as people and scripts use it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod background;
mod half_printed;
mod home;
mod pty;
mod ringer;
mod trace;

mod ask;
mod durable;
mod faults;
mod help;
mod listen;
mod log_status_nuke;
mod notify_format;
mod progress;
mod race_windows;
mod term_detect;
mod term_notify;
mod term_scan;
