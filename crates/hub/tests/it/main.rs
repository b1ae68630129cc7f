//! A whole hub, with real programs, terminals, buses and servers around it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod hub;
mod terminal;

mod away;
mod damage;
mod desktop;
mod held_lock;
mod hook_trust;
mod hooks;
mod isolation;
mod programs;
mod quiet;
mod repositories;
mod restart;
mod settings;
mod socket;
mod terminals;
mod tmux;
mod unwritable;
mod watches;
