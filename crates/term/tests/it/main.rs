//! Tests of the public API: recordings of real clients, hostile bytes, and real multiplexers.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how a test fails")]

mod captures;
mod nested;
mod osc_cases;
mod properties;
mod screen;
mod sender_script;
mod terminal;
mod tmux;
