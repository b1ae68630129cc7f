//! The interface between the UI and the rest of the program: the data that it shows, and the requests of the person.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use ringer_core::agent::PromptContent;
use ringer_core::attention::ReadBy;
use ringer_core::message::ShownKind;
use ringer_core::toast::Colour;

/// The rest of the program. Calls may be slow, so the loop makes them on other threads, except [`setup`](Self::setup) and
/// [`edit`](Self::edit).
pub trait Backend: Send + Sync {
    /// Loads everything the UI shows.
    fn load(&self) -> Data;

    /// Follows the hub's events and calls `changed` for each. Returns when the event stream ends.
    fn follow(&self, changed: &dyn Fn());

    /// Returns the data loaded last, with the agents' current tools.
    fn load_tools(&self) -> Data;

    /// Watches tools begin and end, and calls `changed` each time. Returns where that is not possible.
    fn follow_tools(&self, changed: &dyn Fn());

    /// Watches the agents of other machines, and calls `changed` for each change. Returns where that is not possible.
    fn follow_machines(&self, changed: &dyn Fn());

    /// Carries out a request.
    fn perform(&self, request: &Request) -> Response;

    /// Runs the setup, in which the person connects their agents. It owns the terminal meanwhile.
    fn setup(&self);

    /// Opens a text in the person's editor, which owns the terminal meanwhile. Returns the edited text, or the reason for the
    /// failure.
    fn edit(&self, text: &str) -> Result<String, String>;

    /// Asks the person a question of a program in a pane, and waits for the answer. Calls `asked` once the question is stored.
    /// Closes the question when `stop` is hung up.
    fn ask(&self, question: &ProgramQuestion, asked: &mut dyn FnMut(), stop: BorrowedFd<'_>)
    -> ProgramAnswer;

    /// Closes all open questions of programs in panes, after the process that asked them ended without closing them.
    fn close_program_questions(&self);
}

/// A question of a program in a pane, asked with the buttons of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramQuestion {
    /// The question.
    pub text: String,
    /// The labels of the buttons.
    pub options: Vec<String>,
    /// The surface of the pane.
    pub surface: String,
    /// The workspace of the pane.
    pub workspace: Option<String>,
    /// The terminal device of the pane.
    pub tty: Option<String>,
    /// The process that was started in the pane.
    pub pid: Option<u32>,
    /// The program's directory.
    pub directory: PathBuf,
}

/// The outcome of a program's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramAnswer {
    /// The person chose this option.
    Chosen(String),
    /// It was closed without an answer.
    Closed,
    /// It could not be asked.
    NotAsked,
}

/// A request of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Go to the terminal of a notification.
    GoTo {
        /// The notification.
        id: String,
    },
    /// Go to a surface.
    GoToSurface {
        /// The surface.
        surface: String,
    },
    /// Show the full prompt of a notification.
    Prompt {
        /// The notification.
        id: String,
    },
    /// Answer the prompt of a notification.
    Answer {
        /// The notification.
        id: String,
        /// One answer for each question; for a permission or a plan, the decision and an optional reason.
        words: Vec<String>,
    },
    /// Mark a notification read.
    Read {
        /// The notification.
        id: String,
    },
    /// Mark a notification unread.
    Unread {
        /// The notification.
        id: String,
    },
    /// Remove a notification from the list.
    Remove {
        /// The notification.
        id: String,
    },
    /// Remove all notifications from the list.
    ClearAll,
    /// Undo the last read, clear or mute.
    Undo,
    /// Show how a notification was delivered.
    Why {
        /// The notification.
        id: String,
    },
    /// Show the page of an agent.
    AgentPage {
        /// The agent.
        agent: String,
        /// The width of its lines, in columns.
        width: usize,
        /// True to show every background task with its whole text.
        verbose: bool,
        /// True if the terminal can show only ASCII.
        ascii: bool,
    },
    /// Snooze a notification.
    Snooze {
        /// The notification.
        id: String,
        /// A duration or a time: `10m`, `tomorrow`.
        until: String,
    },
    /// Mute an agent.
    Mute {
        /// The agent.
        agent: String,
        /// A duration or a time: `10m`, `tomorrow`.
        until: String,
    },
    /// Unmute an agent.
    Unmute {
        /// The agent.
        agent: String,
    },
}

impl Request {
    /// Returns true if the request may change what is shown.
    pub(crate) fn changes_data(&self) -> bool {
        !matches!(self, Self::Prompt { .. } | Self::Why { .. } | Self::AgentPage { .. })
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// The request was carried out.
    Done {
        /// A message, if the screen does not show the result.
        text: Option<String>,
    },
    /// The request failed.
    Failed {
        /// The reason, and what to do about it.
        text: String,
    },
    /// The terminal of the selected row is in front.
    Went,
    /// The full prompt of a notification.
    Prompt(Box<PromptDetails>),
    /// The outcome of an answer.
    Answered {
        /// The notification.
        id: String,
        /// True if the agent accepted the answer.
        is_taken: bool,
        /// A message about the outcome.
        text: String,
    },
    /// How a notification was delivered.
    Why {
        /// The lines.
        lines: Vec<String>,
    },
    /// The page of an agent.
    AgentPage {
        /// The agent.
        agent: String,
        /// The lines, or why there are none.
        lines: Vec<String>,
    },
}

/// The full prompt of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDetails {
    /// The notification.
    pub id: String,
    /// The title of the dialog: `api/auth · needs permission`.
    pub title: String,
    /// The permission request, the plan or the questions.
    pub content: PromptContent,
    /// Why the prompt cannot be answered here; `None` if it can.
    pub unanswerable_here: Option<String>,
}

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
