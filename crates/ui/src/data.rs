//! What is shown.

use ringer_core::attention::ReadBy;
use ringer_core::message::ShownKind;
use ringer_core::toast::Colour;

/// All that the UI shows, as it was read last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// What is open and needs the person, the most urgent first. There may be more than were read.
    pub needs_you: Vec<Notification>,
    /// How many need the person that are not in that list.
    pub needs_you_unlisted: usize,
    /// The newest of all the others, the newest first.
    pub recent: Vec<Notification>,
    /// The agents, in the order in which they are listed.
    pub agents: Vec<Agent>,
    /// The current toast.
    pub toast: Option<FooterToast>,
    /// What the indicators say.
    pub indicators: Vec<String>,
    /// What is wrong with Ringer itself, or why nothing newer can be read.
    pub problem: Option<String>,
    /// Whether this was read at all.
    pub was_read: bool,
    /// Whether any agent or notification was ever seen.
    pub has_history: bool,
}

/// A notification. Its texts are as they were sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Its id.
    pub id: String,
    /// What a person types for it.
    pub short_id: String,
    /// The agent that it is from.
    pub from: String,
    /// Where it is from, in short: `api/auth`.
    pub label: String,
    /// What it is.
    pub kind: ShownKind,
    /// What it says.
    pub text: String,
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: i64,
    /// Where it happened, in words: `tmux main:3`.
    pub place: String,
    /// Whether it was read.
    pub is_read: bool,
    /// What made it read, or ended it.
    pub read_by: Option<ReadBy>,
    /// When it comes back, if it was put off.
    pub snoozed_until_ms: Option<i64>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Whom its notifications are from: its name, or else its id.
    pub sender: String,
    /// Where it works, in short: `api/auth`.
    pub label: String,
    /// Its client: `claude`.
    pub client: String,
    /// The word of its state, as the hub has it.
    pub state: String,
    /// What it does, said or wants.
    pub text: String,
    /// Since when it is in its state, in milliseconds since 1970.
    pub since_ms: i64,
    /// Where it is, in words: `tmux main:3`.
    pub place: String,
    /// The surface to go to.
    pub surface: Option<String>,
    /// Until when it is muted, in milliseconds since 1970; `i64::MAX` if that has no end.
    pub muted_until_ms: Option<i64>,
}

/// A toast, as the footer shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct FooterToast {
    /// Its pieces.
    pub spans: Vec<(String, Colour)>,
}

impl FooterToast {
    /// A toast of one piece.
    pub fn new(text: impl Into<String>, colour: Colour) -> Self {
        Self { spans: vec![(text.into(), colour)] }
    }
}
