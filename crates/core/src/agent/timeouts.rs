//! How long an agent may be silent, or wait.

use std::time::Duration;

/// The default of [`AgentTimeouts::stuck`].
const STUCK_AFTER: Duration = Duration::from_mins(10);
/// The default of [`AgentTimeouts::idle`].
const IDLE_AFTER: Duration = Duration::from_mins(1);

/// The timeouts that settings can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// How long an agent may work without any signal before it counts as stuck.
    pub stuck: Duration,
    /// How long an agent may wait for its user before that makes a notice (`notify.idle_reminder`); `None` for ever.
    pub idle: Option<Duration>,
}

impl Default for AgentTimeouts {
    fn default() -> Self {
        Self { stuck: STUCK_AFTER, idle: Some(IDLE_AFTER) }
    }
}
