//! Hosts, which show surfaces: the protocol of attached hosts.

pub(crate) mod protocol;
