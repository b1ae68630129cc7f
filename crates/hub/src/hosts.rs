//! Hosts, which show surfaces: the protocol of attached hosts, tmux, and plain terminals.

pub(crate) mod plain_host;
pub(crate) mod protocol;
pub(crate) mod tmux;
