//! The hub as people meet it: through the real program, with a real process in the background.

mod agent_rows;
mod agents_that_try;
mod appending;
mod away;
mod backlog;
mod callers;
mod commands;
pub(crate) mod dialogs;
mod down;
pub(crate) mod environment;
mod example_host;
mod exchanged;
mod failing;
mod following;
mod footer_docs;
mod going_there;
mod home_removed;
mod hostile_text;
pub(crate) mod inbox;
mod intruders;
mod looking;
mod naming;
mod open;
mod person_text;
mod places;
mod popups;
mod problems;
mod protocol;
mod quiet;
mod repaired;
mod show;
mod snapshots;
mod spool;
mod starting;
mod stopped;
mod surroundings;
pub(crate) mod tmux;
pub(crate) mod tmux_client;
mod tmux_host;
mod tmux_scan;
mod tmux_servers;
mod trust;
mod undo;
#[cfg(target_os = "linux")]
mod window_desk;
#[cfg(target_os = "linux")]
mod windows;
