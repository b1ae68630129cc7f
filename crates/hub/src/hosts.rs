//! Programs and multiplexers that show surfaces: what they send, tmux, and terminals without a host.

pub(crate) mod plain_host;
pub(crate) mod protocol;
pub(crate) mod tmux;
