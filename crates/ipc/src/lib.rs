//! The client side of the hub: finding its socket, the protocol, and starting a hub.
//!
//! Synchronous and without a runtime, because commands and hooks use it, and some of them have only a few milliseconds.
//! [`HubClient`] sends a request and waits for the answer; [`tell`] does not wait; [`HostLink`] is a host's connection.
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
//! [`drop_box`] is for processes in a sandbox, which cannot reach a socket.
//!
//! # What it never does
//!
//! It never trusts a socket that another user could have created, nor a process of another user behind one. It never waits
//! longer than 5 s for an answer, or 50 ms in a hook; only a host and a subscriber wait for their next line without a limit.

#![deny(unsafe_code)]

mod client;
pub mod discovery;
pub mod drop_box;
mod host_link;
pub mod part;
mod program_reports;
mod protocol;
mod spawn;

pub use client::{HubClient, HubClientError, HubWriter, connect_to_starting, listed_surfaces, tell};
pub use discovery::HubAddress;
pub use host_link::{Connect, HostFacts, HostLink, HostOptions, KeptReport, LinkEvent, ReportMethod};
pub use program_reports::ProgramReports;
pub use protocol::{ApiError, MAX_LINE, RequestLine, Response, json_line, read_request};
pub use spawn::{
    DETACHED, IF_USED, StartError, StartFailure, detach, start_and_wait, start_detached,
    start_with_arguments, tell_failed, tell_ready,
};
