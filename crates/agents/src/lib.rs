//! Agents.
#![forbid(unsafe_code)]

pub mod client;
pub mod setup;
