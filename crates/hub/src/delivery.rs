//! Carries out what was decided: popups, sounds, programs, titles.

pub(crate) mod executor;
pub(crate) mod probed_terminal;
pub(crate) mod session_bus;
pub mod setup;
pub(crate) mod terminals;
pub(crate) mod titles;
