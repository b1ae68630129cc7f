//! Carries out deliveries: popups, terminal notifications, sounds, programs, webhooks and title marks.

pub(crate) mod executor;
pub(crate) mod part_calls;
pub(crate) mod probed_terminal;
pub(crate) mod session_bus;
pub mod setup;
pub(crate) mod terminals;
pub(crate) mod titles;
mod turns;
