//! The keeper as a process of its own, with real programs on real PTYs.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod connections;
mod panes;
mod servers;
mod support;
