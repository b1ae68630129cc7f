//! Tests with real parts.

mod client;
mod client_memory;
mod client_properties;
mod setup_apply;
mod setup_configs;
mod setup_kill;
mod setup_property;
mod setup_shell;
