//! The events that a program sends to its terminal.

use crate::osc99::{Actions, NotificationId, Occasion, Urgency};
use crate::progress::Progress;
use crate::status::ProgramStatus;

/// One event in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalEvent {
    /// The offset at which its sequence starts in the stream. For a wrapped sequence that is the wrapper's, for a notification
    /// in several chunks the first chunk's.
    pub offset: u64,
    /// The kind of event.
    pub kind: TerminalEventKind,
}

/// The kinds of events. All text is unchanged from the program: sanitise it before showing it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminalEventKind {
    /// A notification.
    Notification(Notification),
    /// OSC 99: close a notification.
    Close {
        /// The id of the notification.
        id: NotificationId,
    },
    /// OSC 9;4.
    Progress(Progress),
    /// OSC 0 or 2. Empty when the program clears its title.
    Title(String),
    /// A bell that does not end a sequence.
    Bell,
    /// OSC 7501.
    Status(ProgramStatus),
    /// A query that the embedder should answer.
    Query(Query),
    /// OSC 8. An empty URI ends the link.
    Hyperlink {
        /// Identifies the parts of one link.
        id: Option<String>,
        /// The target.
        uri: String,
    },
    /// OSC 7, or ConEmu's 9;9.
    Cwd(String),
    /// OSC 133, or ConEmu's 9;12.
    Prompt(Prompt),
}

/// The protocol of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// OSC 9.
    Osc9,
    /// OSC 99.
    Osc99,
    /// OSC 777.
    Osc777,
}

impl Protocol {
    /// The name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Osc9 => "osc9",
            Self::Osc99 => "osc99",
            Self::Osc777 => "osc777",
        }
    }
}

/// A notification as a program sent it. OSC 9 and 777 fill only the first fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The protocol.
    pub protocol: Protocol,
    /// OSC 99 only, and only if the program sent a valid one.
    pub id: Option<NotificationId>,
    /// Empty if the protocol has none.
    pub title: String,
    /// The text.
    pub body: String,
    /// The metadata of OSC 99.
    pub metadata: Osc99Metadata,
}

/// The metadata keys of OSC 99.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Osc99Metadata {
    /// `u`.
    pub urgency: Urgency,
    /// `o`.
    pub occasion: Occasion,
    /// `a`.
    pub actions: Actions,
    /// `p=buttons`.
    pub buttons: Vec<String>,
    /// `c`.
    pub report_close: bool,
    /// `f`.
    pub application: Option<String>,
    /// `n`.
    pub icons: Vec<String>,
    /// `g`.
    pub icon_key: Option<NotificationId>,
    /// `s`.
    pub sound: Option<String>,
    /// `t`.
    pub types: Vec<String>,
    /// `w`, if it is not left to the system.
    pub expires_ms: Option<u32>,
}

/// A query to the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// `p=?`: asks what the terminal supports. Answer with [`crate::query99_reply`].
    Osc99 {
        /// The id to answer with.
        id: Option<NotificationId>,
    },
    /// `p=alive`: asks which notifications are still shown. Answer with [`crate::alive99_reply`].
    Alive {
        /// The id to answer with.
        id: Option<NotificationId>,
    },
    /// OSC 7501 `?`. Answer with [`crate::ProgramStatus::query`]; otherwise Claude Code reports no status.
    Osc7501,
}

/// A mark of the shell around its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The mark.
    pub mark: PromptMark,
    /// The exit code of the command, with [`PromptMark::CommandEnd`], if the shell reports it.
    pub exit_code: Option<i32>,
}

/// The marks of OSC 133.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptMark {
    /// `A`, `N`, `P`: a prompt begins.
    PromptStart,
    /// `B`, `I`: the prompt ends, the person types.
    InputStart,
    /// `C`: the command runs.
    OutputStart,
    /// `D`: the command ended.
    CommandEnd,
    /// `L`: a fresh line.
    FreshLine,
}

impl PromptMark {
    /// The name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PromptStart => "prompt_start",
            Self::InputStart => "input_start",
            Self::OutputStart => "output_start",
            Self::CommandEnd => "command_end",
            Self::FreshLine => "fresh_line",
        }
    }
}
