//! Where an injection enters a conversation.

/// What an agent is doing, as far as it decides the entry point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Activity {
    /// In a turn: another tool result, or the end of the turn, will come.
    Working,
    /// Between turns.
    #[default]
    Idle,
}

/// Where an injection enters a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryPoint {
    /// Appended to the next tool result.
    NextToolResult,
    /// Queued as the next message, and the agent is woken.
    NextMessage,
}

impl EntryPoint {
    /// The entry point for an agent that does this.
    pub fn of(activity: Activity) -> Self {
        match activity {
            Activity::Working => Self::NextToolResult,
            Activity::Idle => Self::NextMessage,
        }
    }

    /// Whether the agent has to be woken.
    pub fn needs_wake(self) -> bool {
        self == Self::NextMessage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_working_into_the_next_tool_result_agent_idle_next_message_and_woken() {
        let check = |activity, entry, wakes| {
            assert_eq!((EntryPoint::of(activity), EntryPoint::of(activity).needs_wake()), (entry, wakes));
        };
        check(Activity::Working, EntryPoint::NextToolResult, false);
        check(Activity::Idle, EntryPoint::NextMessage, true);
    }
}
