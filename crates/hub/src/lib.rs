//! The hub: the one process per person that runs the assembly line.
//!
//! It reads the journal from its own cursor, lets [`ringer_core::Engine`] decide, writes down what was decided, and
//! carries it out through `ringer-deliver` and the [`Host`]s that the program plugged in. Commands talk to it over a
//! socket (`ringer_ipc::Client`); everything they change is a message in the journal first, so nothing depends on the hub being
//! there.
//!
//! ```no_run
//! use ringer_hub::{PlainHost, Plugs, Surroundings, run};
//! use ringer_journal::Home;
//!
//! let surroundings = Surroundings::of_process(Home::new("/people/me/.local/state/ringer"), true);
//! run(&surroundings, Plugs { hosts: vec![Box::new(PlainHost::default())], ..Plugs::default() })?;
//! # Ok::<(), ringer_hub::RunError>(())
//! ```
//!
//! # Inside
//!
//! `run` takes the lock, binds the socket and starts two threads. One is the loop (`dispatch`), which owns the engine and
//! the journal and takes every `Input` in turn; `feed`, `requests`, `signals`, `settings` and `book` are parts of it. The
//! other carries out what can hang (`perform`, `terminals`, `tmux`, `session_bus`, `watch`) and serves the socket
//! (`server`). A third one (`scout`) looks at the repositories from which messages come.
//!
//! # What it never does
//!
//! It makes no writer wait. It shows nothing that is not in the journal. It waits for nobody on its loop: programs,
//! terminals, the desktop, the network, repositories and clients each have a deadline and a place of their own.
//!
//! # Bounds
//!
//! Connections: 256, lines of 1 MiB, 500 requests a second each. Deliveries under way: 1024, then messages wait in the
//! journal. In memory: what is unread, and 10,000 of the rest.

#![deny(unsafe_code)]

mod apply;
mod arrive;
mod book;
mod clock;
pub mod delivery_setup;
mod dispatch;
mod events;
mod feed;
mod focus;
mod hook_programs;
mod host;
mod housekeeping;
mod input;
mod log;
mod obey;
mod params;
mod perform;
mod plain;
mod probed;
mod process;
mod recover;
mod repairs;
mod requests;
mod run;
mod scout;
mod server;
mod session_bus;
mod settings;
mod signals;
mod slots;
mod spool;
mod terminals;
mod title_writer;
mod titles;
mod tmux;
pub mod view;
mod watch;
mod why;
mod writes;

pub use clock::{Clock, monotonic};
pub use events::HubEvent;
pub use host::{Focused, Host, Service, SurfaceInfo};
pub use log::Log;
pub use plain::PlainHost;
pub use probed::ProbedTerminal;
pub use requests::names as methods;
pub use run::{Plugs, RunError, Surroundings, run};
pub use server::MAX_CONNECTIONS;
pub use settings::trust_file;
pub use tmux::TmuxPane;
pub use why::{agents, explain};
