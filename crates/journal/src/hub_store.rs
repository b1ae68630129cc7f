//! The hub store: the database that only the hub writes.

pub(crate) mod store;
pub(crate) mod transaction;
