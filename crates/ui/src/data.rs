//! The data that the UI shows.

use ringer_core::attention::ReadBy;
use ringer_core::message::ShownKind;
use ringer_core::toast::Colour;

/// Everything the UI shows, as last loaded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// Open notifications that need the person, most urgent first. There may be more than were loaded.
    pub needs_you: Vec<Notification>,
    /// The number of notifications that need the person and are not in `needs_you`.
    pub needs_you_unlisted: usize,
    /// The newest of the other notifications, newest first.
    pub recent: Vec<Notification>,
    /// The agents, in display order.
    pub agents: Vec<Agent>,
    /// The current toast.
    pub toast: Option<FooterToast>,
    /// The texts of the indicators.
    pub indicators: Vec<String>,
    /// A problem with Ringer itself, or why no newer data can be loaded.
    pub problem: Option<String>,
    /// False until data was loaded for the first time.
    pub was_read: bool,
    /// True if any agent or notification was ever seen.
    pub has_history: bool,
}

/// A notification. Its texts are as they were sent, not sanitised.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Its id.
    pub id: String,
    /// The short id that a person types.
    pub short_id: String,
    /// The sender: the name of an agent, or else its id.
    pub from: String,
    /// A short name for its origin: `api/auth`.
    pub label: String,
    /// Its kind.
    pub kind: ShownKind,
    /// Its text.
    pub text: String,
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: i64,
    /// Where it happened, in words: `tmux main:3`.
    pub place: String,
    /// True if it was read.
    pub is_read: bool,
    /// The cause for which it is marked read or closed.
    pub read_by: Option<ReadBy>,
    /// When a snoozed notification comes back, in milliseconds since 1970.
    pub snoozed_until_ms: Option<i64>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// The sender of its notifications: its name, or else its id.
    pub sender: String,
    /// Where it works, in short: `api/auth`.
    pub label: String,
    /// Its client: `claude`.
    pub client: String,
    /// The name of its state, as the hub reports it.
    pub state: String,
    /// Its current tool, its open prompt, or its last message.
    pub text: String,
    /// When it entered its state, in milliseconds since 1970.
    pub since_ms: i64,
    /// Where it is, in words: `tmux main:3`.
    pub place: String,
    /// The surface to go to.
    pub surface: Option<String>,
    /// When its mute ends, in milliseconds since 1970; `i64::MAX` for a mute without an end.
    pub muted_until_ms: Option<i64>,
}

/// A toast in the footer.
#[derive(Debug, Clone, PartialEq)]
pub struct FooterToast {
    /// Pieces of text with their colours.
    pub spans: Vec<(String, Colour)>,
}

impl FooterToast {
    /// Returns a toast of one piece.
    pub fn new(text: impl Into<String>, colour: Colour) -> Self {
        Self { spans: vec![(text.into(), colour)] }
    }
}
