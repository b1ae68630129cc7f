//! What tells of an agent's state, and how much it is to be believed.

use serde::{Deserialize, Serialize};

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "on")]
pub enum AgentState {
    /// It was started and has not drawn itself yet.
    Starting,
    /// It waits for its first input.
    Ready,
    /// It is in a turn.
    Working,
    /// It needs somebody.
    Blocked(BlockedOn),
    /// Its turn ended as it should.
    Done,
    /// It is in a turn and has not shown a sign of life for long.
    Stuck,
    /// Its turn ended because something failed.
    Error,
    /// It has gone.
    Exited,
    /// It waits for its provider. Never told.
    RateLimited,
    /// It shortens its memory. Never told.
    Compacting,
}

/// What a blocked agent needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedOn {
    /// Leave to do something.
    Permission,
    /// An answer.
    Question,
    /// A login.
    Auth,
    /// What to do next: its last words said that it waits.
    Input,
}

impl AgentState {
    /// Whether it is in the middle of a turn.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Working | Self::Stuck | Self::RateLimited | Self::Compacting)
    }

    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Working => "working",
            Self::Blocked(BlockedOn::Permission) => "blocked on a permission",
            Self::Blocked(BlockedOn::Question) => "blocked on a question",
            Self::Blocked(BlockedOn::Auth) => "blocked on a login",
            Self::Blocked(BlockedOn::Input) => "waiting for input",
            Self::Done => "done",
            Self::Stuck => "stuck",
            Self::Error => "error",
            Self::Exited => "exited",
            Self::RateLimited => "rate limited",
            Self::Compacting => "compacting",
        }
    }
}

/// Who tells it, the most believable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// The client's own hooks.
    Hook,
    /// OSC 7501.
    Status,
    /// The window title.
    Title,
    /// A notification the client sent. Never a sign that a turn ended.
    Notification,
    /// The process: it started, it ended.
    Process,
}

impl Authority {
    /// The words used in the trail.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "a hook",
            Self::Status => "its program status",
            Self::Title => "its title",
            Self::Notification => "a notification of its own",
            Self::Process => "its process",
        }
    }
}

/// What a signal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// The agent is in this state now.
    Is(AgentState),
    /// The turn ended; whether it is done or needs somebody is not said. Claude Code's title does this.
    TurnEnded,
    /// It sent a notification of its own, which may be about anything, and late.
    Notified,
    /// It says that it has been waiting for its person.
    Idle,
    /// It lives: output, a tool, a spinner's next frame.
    Alive,
}

/// One sign of what an agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Who tells it.
    pub authority: Authority,
    /// What.
    pub says: Says,
    /// In the client's words: the question, what it wants to do, the error, the last message.
    pub text: Option<String>,
    /// Whether the agent still has background work running; its turn then is not complete.
    pub pending: bool,
}

impl Signal {
    /// A signal that says nothing but the state.
    pub fn state(authority: Authority, state: AgentState) -> Self {
        Self { authority, says: Says::Is(state), text: None, pending: false }
    }

    /// The same, with the client's words.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}
