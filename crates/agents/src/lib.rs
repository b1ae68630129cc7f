//! Coding agents: how each client's hooks are read and answered, how the client is set up, and how an idle agent is reached.
//!
//! - [`client`]: hook input in, report out; reply in, hook output out. Pure.
//! - [`setup`]: a client's configuration in, a plan with a diff out. Plans are applied atomically and undone exactly.
//! - [`hook`]: one hook call, from input to answer, with the journal in between.
//! - [`push`]: sends messages to idle agents.
//! - [`codex_server`]: shows and answers Codex's dialogs through its app server.
//! - [`sessions`]: session state that no hook reports, such as interruptions, read from the client's files.
//! - [`unhooked`]: the same for clients whose hooks are not set up.
//! - [`answering`]: answers an agent's prompt and checks that the client took the answer.
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
//! It never makes an agent fail, or wait for other processes for more than about 0.1 s. A hook beside an open dialog waits for
//! the person, and the dialog stays usable. It changes no byte of a configuration outside Ringer's own entries. It gives an agent
//! only what is addressed to it.
//!
//! # Inside
//!
//! `client` is pure: each client is an `Adapter` in one file there, which reads a hook's input and writes its output. `hook` is one call
//! from input to answer; `waiting_hook` sleeps beside an open dialog, or while a session is idle. `answering` gives an answer
//! and finds out whether it was taken. `setup` plans and splices clients' settings. `codex_server` speaks with Codex's own server;
//! `sessions` reads what clients write about their sessions where no hook reports it.

#![forbid(unsafe_code)]

pub mod account;
pub mod answering;
pub mod client;
pub mod codex_server;
pub mod hook;
mod hook_context;
pub mod push;
pub mod sessions;
pub mod setup;
pub mod unhooked;
mod waiting_hook;
