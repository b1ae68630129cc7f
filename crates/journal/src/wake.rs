//! How a process waits, and how writers wake it.

pub(crate) mod doorbell;
pub(crate) mod subscription;
pub(crate) mod waiter;
