//! What the tools do, as the program implements it.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::tools::{AnswerArguments, AskArguments, ListArguments, NotifyArguments, QuestionsArguments};

/// What a tool says: its text, or what went wrong and what to do next.
pub type ToolText = Result<String, String>;

/// How asking a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskResult {
    /// It has its answer; `None` if it was closed without one.
    Answered {
        /// The id of the question.
        id: String,
        /// The answer.
        answer: Option<String>,
    },
    /// It is still open.
    Open {
        /// The id of the question.
        id: String,
        /// Whether the answer is sent to the agent that asked. Without an agent it is only kept.
        is_sent_later: bool,
    },
}

/// The journal and the hub, for the tools. The methods block, and are called on threads where that is allowed.
pub trait Backend: Send + Sync + 'static {
    /// Sends a message.
    fn notify(&self, message: &NotifyArguments) -> ToolText;

    /// Asks, and waits for the answer: until the time is over, or `stop` is closed at its other end.
    fn ask(
        &self,
        question: &AskArguments,
        within: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<AskResult, String>;

    /// The answer to a question is in a result that is about to be written: it need not come once more.
    fn mark_answer_read(&self, question: &str);

    /// The questions, as text.
    fn questions(&self, arguments: &QuestionsArguments) -> ToolText;

    /// Answers a question of `ask`.
    fn answer(&self, arguments: &AnswerArguments) -> ToolText;

    /// The agent has read these messages elsewhere. The text says what is wrong with the ids, if something is.
    fn mark_seen(&self, ids: &[String]) -> ToolText;

    /// The notifications, as text.
    fn list(&self, arguments: &ListArguments) -> ToolText;

    /// What needs the person, the agents and the hub, as text.
    fn status(&self) -> ToolText;
}
