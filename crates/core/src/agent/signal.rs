//! Signals about an agent's state, and the reliability of their sources.

use serde::{Deserialize, Serialize};

use crate::message::Kind;

/// The state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "on")]
#[non_exhaustive]
pub enum AgentState {
    /// Was started and has drawn nothing yet.
    Starting,
    /// Waits for its first input.
    Ready,
    /// Is in a turn.
    Working,
    /// Needs a person.
    Blocked(BlockedOn),
    /// The turn ended normally.
    Done,
    /// Is in a turn and has sent no signal for [`AgentTimeouts::stuck`](crate::agent::AgentTimeouts::stuck).
    Stuck,
    /// The turn ended because something failed.
    Error,
    /// The process has ended.
    Exited,
    /// Waits for its provider. Never reported.
    RateLimited,
    /// Compacts its context. Never reported.
    Compacting,
}

/// What a blocked agent needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockedOn {
    /// A permission.
    Permission,
    /// An answer.
    Question,
    /// A login.
    Auth,
    /// The next instruction: its last message said that it waits.
    Input,
}

impl AgentState {
    /// Returns true in the middle of a turn.
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

/// The sources of signals, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Authority {
    /// The client's own hooks.
    Hook,
    /// OSC 7501.
    Status,
    /// The window title.
    Title,
    /// A notification that the client sent. It never means that a turn ended.
    Notification,
    /// The start and the end of the process.
    Process,
}

impl Authority {
    /// The text used in the trail.
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

/// The content of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalContent {
    /// The agent is in this state now.
    #[serde(rename = "is")]
    State(AgentState),
    /// The turn ended; the agent is done or blocked. Claude Code's title says no more than this.
    TurnEnded,
    /// The client sent a notification, which may be about anything and may come late.
    Notified,
    /// The client reports that it has been waiting for its user.
    Idle,
    /// The person interrupted the turn or refused a request: the agent waits for them.
    Interrupted,
    /// The agent wants a permission in a run that no person attends: the client refuses it at once, unless a program allows
    /// it.
    UnattendedPermission,
    /// The agent is active: output, a tool call, the next frame of a spinner.
    Alive,
}

/// One report about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The source.
    pub authority: Authority,
    /// The content.
    #[serde(rename = "says")]
    pub content: SignalContent,
    /// The client's text: the question, the requested action, the error, the last message.
    pub text: Option<String>,
    /// True if background work is running that will wake the agent again: the turn is not complete then.
    pub pending: bool,
    /// The background tasks that keep running after the turn, such as a server or a subagent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running: usize,
    /// The tool call that the signal is about. It tells which of several prompts has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// True if the person caused it, not Ringer or another agent: they gave the prompt, or ended the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_person: bool,
    /// The client's id of the turn, if a prompt that is given in the middle of a turn may start the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The kind of a notification, if the terminal's host reports it: the program ended with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Signal {
    /// Creates a signal with a state and no text.
    pub fn state(authority: Authority, state: AgentState) -> Self {
        Self::new(authority, SignalContent::State(state))
    }

    /// Creates a signal with no text.
    pub fn new(authority: Authority, content: SignalContent) -> Self {
        Self {
            authority,
            content,
            text: None,
            pending: false,
            running: 0,
            call: None,
            by_person: false,
            turn: None,
            kind: None,
        }
    }

    /// Returns true if the signal says that the agent needs a person.
    pub fn is_blocked(&self) -> bool {
        matches!(self.content, SignalContent::State(AgentState::Blocked(_)))
    }

    /// Sets the tool call.
    pub fn call(mut self, call: impl Into<String>) -> Self {
        self.call = Some(call.into());
        self
    }

    /// Marks the signal as caused by the person.
    pub fn by_person(mut self) -> Self {
        self.by_person = true;
        self
    }

    /// Sets the client's id of the turn.
    pub fn turn(mut self, turn: impl Into<String>) -> Self {
        self.turn = Some(turn.into());
        self
    }

    /// Sets the text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

/// Beginnings of the notification texts that say what a client waits for, from Claude Code 2.1.325 and Codex 0.166.0.
/// Gemini CLI and opencode say it with their titles.
const TEXTS: [(&str, SignalContent); 9] = [
    ("Claude needs your permission", asks(BlockedOn::Permission)),
    ("Claude Code needs your approval", asks(BlockedOn::Permission)),
    ("Claude needs your input", asks(BlockedOn::Question)),
    ("Claude Code needs your input", asks(BlockedOn::Question)),
    ("Claude is waiting for your input", SignalContent::Idle),
    ("Approval requested", asks(BlockedOn::Permission)),
    ("Codex wants to edit", asks(BlockedOn::Permission)),
    ("Plan mode prompt", asks(BlockedOn::Question)),
    ("Question requested", asks(BlockedOn::Question)),
];

const fn asks(on: BlockedOn) -> SignalContent {
    SignalContent::State(AgentState::Blocked(on))
}

/// Converts a notification of an agent without hooks to a signal. An unknown text says nothing about the agent's state.
pub(crate) fn client_notification(title: Option<&str>, body: &str) -> Signal {
    let known = TEXTS.iter().find(|(text, _)| body.starts_with(text));
    let content = known.map_or(SignalContent::Notified, |(_, content)| content.clone());
    let text = title.map_or_else(|| body.to_owned(), |title| format!("{title}: {body}"));
    Signal::new(Authority::Notification, content).text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_that_says_what_the_client_waits_for_is_a_state() {
        for (body, expected) in [
            ("Claude needs your permission to use Bash", asks(BlockedOn::Permission)),
            ("Claude Code needs your input", asks(BlockedOn::Question)),
            ("Claude is waiting for your input", SignalContent::Idle),
            ("Approval requested: touch x", asks(BlockedOn::Permission)),
            ("All finished now", SignalContent::Notified),
        ] {
            let signal = client_notification(Some("Claude Code"), body);
            assert_eq!((signal.content, signal.authority), (expected, Authority::Notification), "{body}");
            assert_eq!(signal.text, Some(format!("Claude Code: {body}")));
        }
    }
}
