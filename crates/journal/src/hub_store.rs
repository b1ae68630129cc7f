//! The file that the hub alone writes.

pub(crate) mod pruning;
pub(crate) mod store;
mod stored_cause;
pub(crate) mod transaction;
