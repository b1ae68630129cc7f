//! Which way something enters a conversation.

/// What an agent is doing, as far as its inbox cares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Activity {
    /// In a turn: another tool result, or the end of the turn, will come.
    Working,
    /// Between turns.
    #[default]
    Idle,
}

/// The way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Appended to the next tool result.
    NextToolResult,
    /// Queued as the next message, and the agent is woken.
    NextMessage,
}

impl Entry {
    /// The way into the conversation of an agent that does this.
    pub fn of(activity: Activity) -> Self {
        match activity {
            Activity::Working => Self::NextToolResult,
            Activity::Idle => Self::NextMessage,
        }
    }

    /// Whether somebody has to wake the agent.
    pub fn wakes(self) -> bool {
        self == Self::NextMessage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_working_into_the_next_tool_result_agent_idle_next_message_and_woken() {
        let check = |activity, entry, wakes| {
            assert_eq!((Entry::of(activity), Entry::of(activity).wakes()), (entry, wakes));
        };
        check(Activity::Working, Entry::NextToolResult, false);
        check(Activity::Idle, Entry::NextMessage, true);
    }
}
