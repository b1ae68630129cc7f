//! Agents: one row each, updated by every process that receives a signal.

pub(crate) mod apply;
pub(crate) mod info;
pub(crate) mod update;
