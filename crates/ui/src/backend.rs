//! What the UI asks of the rest of the program.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use ringer_core::agent::PromptContent;

use crate::data::Data;

/// The rest of the program. Every call may take its time: it runs on a thread of its own.
pub trait Backend: Send + Sync {
    /// Reads all that is shown.
    fn load(&self) -> Data;

    /// Follows what happens, and calls for each change. Returns when there is nothing to follow any more.
    fn follow(&self, changed: &dyn Fn());

    /// What was read last, with what the agents' tools do now.
    fn load_tools(&self) -> Data;

    /// Follows which tools begin and end, and calls for each change. Returns where that cannot be followed.
    fn follow_tools(&self, changed: &dyn Fn());

    /// Follows what is known of the agents of other machines, and calls for each change. Returns where that cannot be followed.
    fn follow_machines(&self, changed: &dyn Fn());

    /// Does what the person wants.
    fn perform(&self, request: &Request) -> Response;

    /// Lets the person connect their agents. It has the terminal for itself meanwhile.
    fn setup(&self);

    /// Lets the person go on with a text in their editor, which has the terminal for itself meanwhile. Gives the text then, or
    /// why it cannot be done.
    fn edit(&self, text: &str) -> Result<String, String>;

    /// Asks the person what a program in a pane asks, and waits for the answer. Calls `asked` once the question is stored. When
    /// `stop` is hung up, the question is closed.
    fn ask(&self, question: &ProgramQuestion, asked: &mut dyn FnMut(), stop: BorrowedFd<'_>)
    -> ProgramAnswer;

    /// Closes all open questions of programs in panes. The process that asked them has ended, and did not close them.
    fn close_program_questions(&self);
}

/// What a program in a pane asks, with the buttons of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramQuestion {
    /// The question.
    pub text: String,
    /// The labels of the buttons.
    pub options: Vec<String>,
    /// The surface of the pane.
    pub surface: String,
    /// Its workspace.
    pub workspace: Option<String>,
    /// Its terminal device.
    pub tty: Option<String>,
    /// The process that was started in it.
    pub pid: Option<u32>,
    /// The program's directory.
    pub directory: PathBuf,
}

/// What came of the question of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramAnswer {
    /// The person chose this option.
    Chosen(String),
    /// It was closed without an answer.
    Closed,
    /// It could not be asked.
    NotAsked,
}

/// What the person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Go to where a notification happened.
    GoTo {
        /// The notification.
        id: String,
    },
    /// Go to a surface.
    GoToSurface {
        /// The surface.
        surface: String,
    },
    /// Show all that a notification asks.
    Prompt {
        /// The notification.
        id: String,
    },
    /// Answer it.
    Answer {
        /// The notification.
        id: String,
        /// The words of the answer, one for each question.
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
    /// Take the last read, clear or mute back.
    Undo,
    /// Show how a notification was delivered.
    Why {
        /// The notification.
        id: String,
    },
    /// Show what is known of an agent.
    AgentPage {
        /// The agent.
        agent: String,
        /// Columns for its lines.
        width: usize,
        /// Whether each background task is shown, with its whole text.
        verbose: bool,
        /// Whether the terminal can show only ASCII.
        ascii: bool,
    },
    /// Put a notification off.
    Snooze {
        /// The notification.
        id: String,
        /// For how long, or until when.
        until: String,
    },
    /// Mute an agent.
    Mute {
        /// The agent.
        agent: String,
        /// For how long, or until when.
        until: String,
    },
    /// Mute an agent no longer.
    Unmute {
        /// The agent.
        agent: String,
    },
}

impl Request {
    /// Whether doing it may change what is shown.
    pub(crate) fn changes_data(&self) -> bool {
        !matches!(self, Self::Prompt { .. } | Self::Why { .. } | Self::AgentPage { .. })
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// It is done.
    Done {
        /// A sentence about it, where the screen does not show it.
        text: Option<String>,
    },
    /// It is not done.
    Failed {
        /// Why, and what to do.
        text: String,
    },
    /// The terminal of what was selected is in front.
    Went,
    /// All that a notification asks.
    Prompt(Box<PromptDetails>),
    /// What came of an answer.
    Answered {
        /// The notification.
        id: String,
        /// Whether the agent took it.
        is_taken: bool,
        /// A sentence.
        text: String,
    },
    /// How a notification was delivered.
    Why {
        /// The lines.
        lines: Vec<String>,
    },
    /// What is known of an agent.
    AgentPage {
        /// The agent.
        agent: String,
        /// The lines, or why there are none.
        lines: Vec<String>,
    },
}

/// All that a notification asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDetails {
    /// The notification.
    pub id: String,
    /// What it is: `api/auth · needs permission`.
    pub title: String,
    /// What it asks.
    pub content: PromptContent,
    /// Why it cannot be answered here.
    pub only_there: Option<String>,
}
