//! How a process waits for messages, and how writers wake it.

pub(crate) mod doorbell;
pub(crate) mod subscription;
pub(crate) mod waiter;
