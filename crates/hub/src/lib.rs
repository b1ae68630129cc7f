//! The hub: the one process per person that decides about notifications and delivers them.
//!
//! It reads the journal from its own cursor, lets [`ringer_core::Engine`] decide, writes down what was decided, and
//! carries it out through `ringer-deliver` and the [`Host`](ringer_ipc::host::Host)s that the program plugged in. Commands
//! talk to it over a socket (`ringer_ipc::HubClient`); everything they change is a message in the journal first, so nothing depends on the hub being
//! there.
//!
//! ```no_run
//! use ringer_hub::{HubOptions, PlainHost, run};
//! use ringer_ipc::host::PlugIns;
//! use ringer_journal::Home;
//!
//! let options = HubOptions::of_process(Home::new("/people/me/.local/state/ringer"), true);
//! run(&options, PlugIns { hosts: vec![Box::new(PlainHost::default())], ..PlugIns::default() })?;
//! # Ok::<(), ringer_hub::HubError>(())
//! ```
//!
//! # Inside
//!
//! `daemon` takes the lock, binds the socket and starts the thread of the `event_loop`, the only place that waits: it
//! hands every event to `state::HubState`, which owns the journal, the engine and everything else, and does the actions that
//! it gets back. Its own thread serves the `socket` and executes what can hang (`delivery`, `hosts::tmux`, `watch`). What goes between
//! them is plain data (`message`, `socket::requests`). Another thread probes the
//! repositories from which messages come (`repository_probe`).
//!
//! # What it never does
//!
//! It makes no writer wait. It shows nothing that is not in the journal. Its loop never waits for them: programs,
//! terminals, the desktop, the network, repositories and clients each have a deadline and a place of their own.
//!
//! # Bounds
//!
//! Connections: 256, lines of 1 MiB, 500 requests a second each after a burst of 1,000. Deliveries: 256 of each channel at
//! once. The others wait, up to 100,000; then messages stay in the journal. In memory: what is unread, and 10,000 of the rest.

#![deny(unsafe_code)]

mod clock;
mod daemon;
pub mod delivery;
mod drop_box;
mod error;
mod event_loop;
mod hosts;
mod journal_maintenance;
mod log;
#[cfg(not(target_os = "macos"))]
mod login_session;
mod message;
mod offline;
mod process;
mod repository_probe;
#[cfg(target_os = "linux")]
mod settings_watch;
mod socket;
mod state;
pub mod view;
mod watch;
mod why;

pub use clock::{Clock, monotonic};
pub use daemon::{HubOptions, run};
pub use delivery::probed_terminal::ProbedTerminal;
pub use error::HubError;
pub use hosts::plain_host::PlainHost;
pub use hosts::tmux::TmuxPane;
pub use log::Log;
#[doc(hidden)]
pub use offline::OfflineHub;
pub use socket::requests::method_names;
pub use socket::server::MAX_CONNECTIONS;
pub use state::{MAX_READ, trust_file};
pub use why::{agents, explain};
