//! Tests with real parts.

mod answers;
mod client;
mod client_memory;
mod client_properties;
mod codex_prompts;
mod hook;
mod hook_inbox;
mod hook_lead;
mod hour;
mod setup_apply;
mod setup_configs;
mod setup_kill;
mod setup_mcp;
mod setup_obstacles;
mod setup_property;
mod setup_shell;
