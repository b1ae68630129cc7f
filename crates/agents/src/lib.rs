//! Agents: for each client how its hooks are read and answered, how it is set up, and how it is reached when idle.
//!
//! - [`client`]: a hook's input in, a report out; a reply in, the bytes for its output out. Pure.
//! - [`setup`]: a client's configuration in, a plan with a diff out; written atomically, undone exactly.
//! - [`hook`]: one call of a hook, from its input to its answer, with the journal in between.
//! - [`push`]: what reaches an agent that is idle.
//! - [`codex_server`]: what Codex asks its person, and answers to that, through its own server.
//! - [`sessions`]: what a client says of its sessions where no hook does, such as an interruption.
//! - [`unhooked`]: the same for clients whose hooks are not set up.
//! - [`answering`]: gives an answer to an agent's prompt.
//! - [`bootstrap`]: the instructions for a lead, given when its session begins.
//!
//! ```
//! use ringer_agents::client::{Client, read_bytes};
//! use ringer_core::agent::{AgentState, SignalContent};
//!
//! let report = read_bytes(Client::Claude, "Stop", br#"{"session_id": "6be1e699", "last_assistant_message": "Done."}"#)?;
//! assert_eq!(report.signals[0].content, SignalContent::State(AgentState::Done));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it never does
//!
//! It never makes an agent fail, or wait for other processes for more than about 0.1 s; a hook beside an
//! open dialog waits for the person, and the dialog stays usable. It changes no byte of a
//! configuration that is not its own entry. It gives an agent nothing that is not addressed to it.

#![forbid(unsafe_code)]

pub mod account;
pub mod answering;
pub mod bootstrap;
pub mod client;
pub mod codex_server;
pub mod hook;
mod hook_context;
pub mod push;
mod session_watch;
pub mod sessions;
pub mod setup;
pub mod unhooked;
mod waiting_hook;
