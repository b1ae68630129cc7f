//! What programs ask with the buttons of their notifications.

/// A question of a pane. No other one of the same pane has its number, as long as the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QuestionNumber(pub(crate) u64);

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    /// The person can answer it.
    Asked,
    /// The person chose the button with this label.
    Chosen(String),
    /// It was closed without an answer.
    Closed,
    /// It could not be asked.
    NotAsked,
}
