//! Events that agents' hooks report, and the spool for events that cannot be written at once.

pub(crate) mod apply;
pub(crate) mod event;
pub(crate) mod spool;

#[cfg(test)]
mod tests;
