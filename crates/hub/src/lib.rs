//! The hub: the one process per person that decides about notifications and delivers them.
//!
//! It reads the journal from its own cursor, lets [`ringer_core::Engine`] decide, writes down the decisions, and carries them out
//! through `ringer-deliver` and the attached hosts. Commands talk to it over a socket
//! (`ringer_ipc::HubClient`). Everything they change is a message in the journal first, so nothing depends on a running hub.
//!
//! ```no_run
//! use ringer_hub::{HubOptions, run};
//! use ringer_journal::Home;
//!
//! let options = HubOptions::of_process(Home::new("/people/me/.local/state/ringer"), true);
//! run(&options, Vec::new())?;
//! # Ok::<(), ringer_hub::HubError>(())
//! ```
//!
//! # Inside
//!
//! `daemon` takes the lock, binds the socket and starts the thread of the `event_loop`, the only place that waits. The loop
//! passes each event to `state::HubState`, which owns the journal, the engine and all other state, and performs the actions that
//! it returns. The main thread serves the `socket` and runs everything that can hang (`delivery`, `watch`). The
//! two exchange plain data (`message`). Another thread probes the repositories from which messages come
//! (`repository_probe`).
//!
//! # What it never does
//!
//! It never makes a writer wait, and shows nothing that is not in the journal. Its loop never waits for programs, terminals, the
//! desktop, the network, repositories or clients: each has a deadline and runs elsewhere.
//!
//! # Bounds
//!
//! Connections: 256, with lines of at most 1 MiB and 500 requests a second each after a burst of 1,000. Deliveries: 256 of each
//! channel at once. Up to 100,000 more wait; beyond that, messages stay in the journal. In memory: everything unread, and 10,000
//! read notifications.

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
pub use log::Log;
pub use offline::OfflineHub;
pub use socket::server::{MAX_CONNECTIONS, RequestGuard};
pub use state::{MAX_READ, trust_file};
pub use why::{agents, explain};
