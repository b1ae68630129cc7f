//! An agent's state, the signals that change it, and the messages that a change causes.

mod machine;
mod messages;
mod notice;
mod popup_answers;
mod prompt;
mod signal;

pub use machine::{AUTHORITY_HOLD, AgentMachine, AgentTimeouts};
pub use messages::{AgentMessage, Tier, agent_messages, ends_with_waiting_marker, episode_key};
pub use notice::{AgentChanges, AgentNotice, EndedEpisode, Episode, running_tasks_text};
pub use popup_answers::PopupAnswer;
pub use prompt::{
    Answer, AnswerError, AnswerMethod, PermissionRequest, Prompt, PromptContent, PromptQuestion,
    question_with_options,
};
pub(crate) use signal::client_notification;
pub use signal::{AgentState, Authority, BlockedOn, Signal, SignalContent};
