//! Reasons in a trail: how a place was found, what marked a notification read, how its cause ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::MessageId;

/// How the place of a notification was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlaceReason {
    /// By the pane or terminal of the sender.
    Surface,
    /// By the workspace that the sender named.
    Workspace,
    /// By the sender's terminal device.
    Terminal,
    /// By the workspace that the person looked at last: the sender has no known terminal.
    SelectedWorkspace,
    /// By the repository: the sender has no known terminal.
    Repository,
}

/// What marked a notification read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadReason {
    /// A command for this notification, or a click on it.
    Person,
    /// A command for its pane or workspace.
    Place,
    /// A command for all notifications.
    All,
    /// The person looked at its pane.
    Looked,
    /// Its question was answered.
    Answered,
    /// Its question was closed without an answer.
    ClosedUnanswered,
    /// A newer notification of the same pane.
    Newer(MessageId),
}

/// How the cause of a notification ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResolvedBy {
    /// The session went on without it.
    WentOn,
    /// The person gave the agent its next prompt.
    Prompted,
    /// The person interrupted the agent.
    Interrupted,
    /// The session ended.
    SessionEnded,
    /// Its time to live was over.
    Expired,
    /// A newer notification of the same sender and key.
    Replaced,
    /// The program that sent it withdrew it.
    Withdrawn,
    /// A value of a newer version.
    #[serde(other)]
    Other,
}

impl ResolvedBy {
    /// The word used in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WentOn => "went_on",
            Self::Prompted => "prompted",
            Self::Interrupted => "interrupted",
            Self::SessionEnded => "session_ended",
            Self::Expired => "expired",
            Self::Replaced => "replaced",
            Self::Withdrawn => "withdrawn",
            Self::Other => "other",
        }
    }

    /// Parses the word used in the journal.
    pub fn named(word: &str) -> Self {
        let known = [
            Self::WentOn,
            Self::Prompted,
            Self::Interrupted,
            Self::SessionEnded,
            Self::Expired,
            Self::Replaced,
            Self::Withdrawn,
        ];
        known.into_iter().find(|by| by.as_str() == word).unwrap_or(Self::Other)
    }
}

/// What marked a notification read or ended it, in one word. The trail says more, but is not kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadBy {
    /// A command or a click of the person.
    Person,
    /// The person looked at its pane.
    Looking,
    /// An answer.
    Answer,
    /// Its question was closed without an answer.
    ClosedUnanswered,
    /// A newer notification.
    Newer,
    /// The next prompt that the person gave the agent.
    Prompt,
    /// The person interrupted the agent.
    Interruption,
    /// The agent went on.
    Agent,
    /// The session ended.
    SessionEnd,
    /// Its time to live was over.
    Expiry,
    /// The program that sent it withdrew it.
    Program,
    /// A value of a newer version.
    #[serde(other)]
    Other,
}

impl ReadBy {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Looking => "looking",
            Self::Answer => "answer",
            Self::ClosedUnanswered => "closed_unanswered",
            Self::Newer => "newer",
            Self::Prompt => "prompt",
            Self::Interruption => "interruption",
            Self::Agent => "agent",
            Self::SessionEnd => "session_end",
            Self::Expiry => "expiry",
            Self::Program => "program",
            Self::Other => "other",
        }
    }
}

impl From<&ReadReason> for ReadBy {
    fn from(reason: &ReadReason) -> Self {
        match reason {
            ReadReason::Person | ReadReason::Place | ReadReason::All => Self::Person,
            ReadReason::Looked => Self::Looking,
            ReadReason::Answered => Self::Answer,
            ReadReason::ClosedUnanswered => Self::ClosedUnanswered,
            ReadReason::Newer(_) => Self::Newer,
        }
    }
}

impl From<ResolvedBy> for ReadBy {
    fn from(resolved: ResolvedBy) -> Self {
        match resolved {
            ResolvedBy::WentOn => Self::Agent,
            ResolvedBy::Prompted => Self::Prompt,
            ResolvedBy::Interrupted => Self::Interruption,
            ResolvedBy::SessionEnded => Self::SessionEnd,
            ResolvedBy::Expired => Self::Expiry,
            ResolvedBy::Replaced => Self::Newer,
            ResolvedBy::Withdrawn => Self::Program,
            ResolvedBy::Other => Self::Other,
        }
    }
}

/// How an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnsweredWith {
    /// `ringer answer`.
    Command,
    /// A button of a popup.
    Popup,
    /// The screen of `ringer`.
    Screen,
    /// A chat, over an MCP channel.
    Channel,
    /// A value of a newer version.
    #[serde(other)]
    Other,
}

impl AnsweredWith {
    /// The word used in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Popup => "popup",
            Self::Screen => "screen",
            Self::Channel => "channel",
            Self::Other => "other",
        }
    }

    /// Parses the word used in the journal.
    pub fn named(word: &str) -> Self {
        let known = [Self::Command, Self::Popup, Self::Screen, Self::Channel];
        known.into_iter().find(|with| with.as_str() == word).unwrap_or(Self::Other)
    }
}

impl fmt::Display for AnsweredWith {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Command => "`ringer answer`",
            Self::Popup => "a button of its popup",
            Self::Screen => "the screen of `ringer`",
            Self::Channel => "an MCP channel",
            Self::Other => "another program",
        })
    }
}

impl fmt::Display for PlaceReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Surface => ", in its pane",
            Self::Workspace => ", in its workspace",
            Self::Terminal => ", in its terminal",
            Self::SelectedWorkspace => {
                ", outside any known terminal: filed under the workspace that you looked at last"
            }
            Self::Repository => ", outside any known terminal: filed under its repository",
        })
    }
}

impl fmt::Display for ReadReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => formatter.write_str("by you"),
            Self::Place => formatter.write_str("by you, with all of its pane or workspace"),
            Self::All => formatter.write_str("by you, with all others"),
            Self::Looked => formatter.write_str("you looked at its pane"),
            Self::Answered => formatter.write_str("the question was answered"),
            Self::ClosedUnanswered => formatter.write_str("the question was closed without an answer"),
            Self::Newer(newer) => write!(formatter, "superseded by {newer}"),
        }
    }
}

impl fmt::Display for ResolvedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WentOn => "the agent went on",
            Self::Prompted => "you gave the agent its next prompt",
            Self::Interrupted => "you interrupted the agent",
            Self::SessionEnded => "the session ended",
            Self::Expired => "its time was over",
            Self::Replaced => "a newer one with the same key replaced it",
            Self::Withdrawn => "the program that sent it took it back",
            Self::Other => "its cause has ended",
        })
    }
}

/// The kinds of commands that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoKind {
    /// Marked notifications read.
    Read,
    /// Took notifications off the list.
    Clear,
    /// Set or ended a mute.
    Mute,
}
