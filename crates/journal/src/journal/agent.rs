//! Agents: one row each. The process that receives a signal updates the row and appends the resulting messages.

pub(crate) mod apply;
pub(crate) mod info;
pub(crate) mod update;
