//! The hub's socket: connections, requests and event subscriptions.

pub(crate) mod lines;
pub(crate) mod params;
pub(crate) mod requests;
pub(crate) mod server;
pub(crate) mod slots;
pub(crate) mod subscriptions;
