//! Surfaces and their hosts: registration, requests of attached hosts, and focus.

pub(super) mod focus_requests;
pub(super) mod host_focus;
pub(super) mod plain_terminals;
pub(super) mod registry;
pub(super) mod surfaces;
