//! Tests with real parts: programs, terminals, a private session bus, a notification server, HTTP.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod wait;

#[cfg(not(target_os = "macos"))]
mod desktop;
#[cfg(not(target_os = "macos"))]
mod dunst;
mod hooks;
mod players;
mod programs;
mod terminals;
mod webhooks;
