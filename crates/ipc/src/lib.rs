//! The hub's socket as a client sees it: where it is, what is said there, and how a hub is started.
//!
//! Synchronous and without a runtime: commands and hooks use it, and some of them have a few milliseconds. [`HubClient`] asks
//! and waits for the answer; [`tell`] sends and does not wait.
//!
//! ```no_run
//! use ringer_ipc::HubClient;
//! use ringer_journal::Home;
//! use serde_json::json;
//!
//! let mut client = HubClient::connect(&Home::new("/people/me/.local/state/ringer"))?;
//! let unread = client.call("notification.list", &json!({ "unread": true }))?;
//! # Ok::<(), ringer_ipc::HubClientError>(())
//! ```
//!
//! [`drop_box`] is the way of processes in a sandbox, which can reach no socket.
//!
//! # What it never does
//!
//! It believes no socket that another user could have made, and no process of another user behind one. It waits for an
//! answer for 5 s at most, and a hook for 50 ms; only a host and a subscriber wait for their next line without a limit.

#![deny(unsafe_code)]

mod client;
pub mod discovery;
pub mod drop_box;
pub mod host;
mod program_reports;
mod protocol;
mod spawn;

pub use client::{
    HostConnection, HubClient, HubClientError, HubWriter, connect_to_starting, listed_surfaces, tell,
};
pub use discovery::HubAddress;
pub use program_reports::ProgramReports;
pub use protocol::{ApiError, MAX_LINE, RequestLine, Response, json_line, read_request};
pub use spawn::{
    DETACHED, IF_USED, StartError, StartFailure, detach, start_and_wait, start_detached,
    start_with_arguments, tell_failed, tell_ready,
};
