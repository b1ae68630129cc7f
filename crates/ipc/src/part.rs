//! The parts of a hub: what runs in its process and acts on what it reads, such as the hosts of tmux servers, links to other
//! machines and MCP channels. The traits are defined here so that the hub and its parts do not depend on each other.

use std::fmt;
use std::sync::Arc;

use ringer_config::Config;
use ringer_core::agent::PopupAnswer;
use ringer_core::message::{Agent, MessageId, QuestionId, SurfaceId};
use ringer_term::{Env, OuterTerminal};
use serde_json::Value;

use crate::protocol::ApiError;

/// A part of a hub. Every call returns at once: slow work happens on the part's own threads. It is dropped when the hub ends;
/// `drop` stops its threads.
pub trait Part: Send {
    /// Handles an event of the hub.
    fn on_event(&mut self, _event: &PartEvent<'_>) {}

    /// Returns true if the hub must keep running for this part.
    fn needs_hub(&self) -> bool {
        false
    }

    /// The methods of the socket that this part answers.
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Answers a request for one of its [`methods`](Part::methods).
    fn call(&mut self, method: &str, _params: &Value) -> Result<Value, ApiError> {
        Err(ApiError::new("unknown_method", format!("unknown method {method:?}")))
    }

    /// Passes on the answers that the person gives in popups. The hub uses the first part that can.
    fn answerer(&self) -> Option<Arc<dyn Answerer>> {
        None
    }

    /// Controls the panes of a terminal multiplexer. The hub uses the first part that can.
    fn pane_control(&self) -> Option<Arc<dyn PaneControl>> {
        None
    }
}

/// An event of the hub.
#[derive(Debug, Clone, Copy)]
pub enum PartEvent<'a> {
    /// The hub has started with these settings, or they have changed.
    Settings(&'a Config),
    /// A message for this agent is in the journal, or its state has changed and messages may be pending.
    AgentActive(&'a Agent),
    /// A notification came from this surface, or the state of an agent on it changed. Agents run a hook before their first
    /// notification.
    SurfaceActive(&'a SurfaceId),
    /// Agents have started, have ended or have changed their state.
    AgentsChanged,
    /// The prompts of an agent, which are dialogs of its client, may have changed.
    PromptsChanged,
}

/// The question behind a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnsweredQuestion {
    /// A dialog of an agent's client, with the key of the notification.
    Prompt(String),
    /// A question of `ringer ask`.
    Question(QuestionId),
    /// A question of an agent on another machine, with the id of the notification.
    Remote(MessageId),
}

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The side that asked has accepted it.
    Taken,
    /// It was not accepted, or not as far as can be seen, for this reason.
    NotTaken(String),
    /// The question can only be answered where it was asked, for this reason.
    OnlyThere(String),
}

/// Passes on the answers that the person gives in a popup.
pub trait Answerer: Send + Sync {
    /// Passes on an answer and waits until it is accepted. The hub calls this on a new thread for each answer.
    fn answer(&self, asked: &AnsweredQuestion, answer: &PopupAnswer) -> AnswerOutcome;
}

/// Controls the panes of a terminal multiplexer that are named by their surface ids ([`SurfaceId::tmux`]). A pane need not be
/// registered, so the hub also reaches panes that an earlier hub knew. Calls may take seconds: the hub makes each on a thread
/// that may block.
pub trait PaneControl: Send + Sync {
    /// The name of the multiplexer, for people.
    fn name(&self) -> &'static str;

    /// Brings a pane to the front.
    fn focus(&self, surface: &SurfaceId) -> Result<(), Unreachable>;

    /// Returns the terminal device of a pane.
    fn tty(&self, surface: &SurfaceId) -> Result<String, Unreachable>;

    /// Marks the title of a pane, or removes the mark.
    fn mark_title(&self, surface: &SurfaceId, set: bool) -> TitleOutcome;

    /// Describes the terminal around the pane of a process with this environment.
    fn outer_terminal(&self, environment: &Env) -> Option<OuterTerminal>;
}

/// The reason why a place could not be brought to the front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// The reason.
    pub why: String,
    /// A command that helps the person.
    pub hint: Option<String>,
    /// The place no longer exists.
    pub is_gone: bool,
}

impl Unreachable {
    /// A place that may still exist.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, is_gone: false }
    }

    /// A place that no longer exists.
    pub fn gone(why: impl Into<String>) -> Self {
        Self { is_gone: true, ..Self::new(why) }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(formatter, "{}; hint: {hint}", self.why),
            None => formatter.write_str(&self.why),
        }
    }
}

/// The result of an attempt to change the mark in a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleOutcome {
    /// The title is marked.
    Set,
    /// There is no mark: it was removed, could not be set, or disappeared with its terminal.
    Gone,
    /// The mark could not be removed yet.
    NotYet,
}
