//! The file that the hub alone writes.

pub(crate) mod store;
pub(crate) mod transaction;
