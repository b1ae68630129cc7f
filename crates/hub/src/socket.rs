//! The hub's socket: connections, requests and event subscriptions.

pub(crate) mod lines;
pub(crate) mod server;
pub(crate) mod slots;
pub(crate) mod subscriptions;
