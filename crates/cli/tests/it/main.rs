//! The program as people and scripts use it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod pty;
mod ringer;

mod help;
mod progress;
mod term_detect;
mod term_notify;
mod term_scan;
