//! The plug-in interfaces of a hub: hosts, which own surfaces and draw rings on them, extensions, which act on what the hub
//! reads, and the answerer, which answers agents. They are defined here so that the hub and the plug-ins do not depend on each
//! other.

use std::sync::Arc;

use ringer_core::Event;
use ringer_core::agent::PopupAnswer;
use ringer_core::attention::{Badge, OnePane};
use ringer_core::message::{Agent, MessageId, Place, QuestionId, SurfaceId, WorkspaceId};
use ringer_core::policy::{McpChannels, RelayLink, RepositoryName};
use ringer_core::toast::Toast;

/// A surface as its host describes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SurfaceInfo {
    /// The id of the surface.
    pub surface: SurfaceId,
    /// The workspace that contains it.
    pub workspace: WorkspaceId,
    /// The terminal device.
    pub tty: Option<String>,
    /// The host that owns it.
    pub host: String,
    /// The title.
    pub title: Option<String>,
    /// The location for people, such as `main:3`.
    pub place: Option<String>,
    /// The surface that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SurfaceId>,
}

/// The result of a focus request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FocusResult {
    /// The surface is at the front.
    Done,
    /// The surface is a tmux pane. The hub asks tmux itself, since that takes time.
    AskTmux,
    /// This host owns the surface, but cannot bring it to the front, for this reason.
    Cannot(String),
    /// This host does not own the surface.
    NotOwned,
}

/// Acts on what the hub reads. Every call returns at once: slow work happens on the extension's own thread.
pub trait Extension: Send {
    /// A message for this agent is in the journal, or the agent has become idle with messages pending.
    fn wake(&mut self, _agent: &Agent) {}

    /// A notification came from a surface, or the state of an agent on it changed. Agents run a hook before their first
    /// notification.
    fn heard_from(&mut self, _surface: &SurfaceId) {}

    /// The tmux server with this socket needs a host.
    fn tmux_found(&mut self, _socket: &str) {}

    /// Sets how rings are shown in tmux windows with a single pane.
    fn set_one_pane(&mut self, _one_pane: OnePane) {}

    /// Enables or disables marks in the titles of terminals, which are used only where the title can be read back.
    fn set_title_marks(&mut self, _are_on: bool) {}

    /// Sets the MCP servers that push messages.
    fn set_mcp_channels(&mut self, _channels: &McpChannels) {}

    /// Sets the person's names for repositories.
    fn set_repository_names(&mut self, _names: &[RepositoryName]) {}

    /// Sets the links to other machines.
    fn set_relays(&mut self, _links: &[RelayLink]) {}

    /// An agent has started, has ended or has changed its state.
    fn agents_changed(&mut self) {}

    /// The prompts of an agent, which are dialogs of its client, may have changed.
    fn prompts_changed(&mut self) {}

    /// Returns true if the hub must keep running for this extension.
    fn needs_hub(&self) -> bool {
        false
    }
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

/// Decides which requests on the hub's socket are reserved for the person.
pub trait RequestGuard: Send + Sync {
    /// Returns true if the sender of this request has to be checked.
    fn is_reserved(&self, method: &str) -> bool;

    /// Returns the reason if a process may not send a request. `pid` is `None` if the process is not visible in the hub's PID
    /// namespace. May take seconds: the hub calls it on a separate thread.
    fn check(&self, pid: Option<u32>, method: &str, params: &serde_json::Value) -> Result<(), String>;
}

/// Owns surfaces. Every call returns at once: slow work happens on other threads, which report the result with an [`Event`].
pub trait Host: Send {
    /// The name of the host, for people.
    fn name(&self) -> &'static str;

    /// Returns the current surfaces, the most recently active first.
    fn surfaces(&self) -> Vec<SurfaceInfo>;

    /// Returns one of the current surfaces.
    fn surface(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        self.surfaces().into_iter().find(|info| info.surface == *surface)
    }

    /// Returns true if the id belongs to a surface of this host.
    fn owns(&self, surface: &SurfaceId) -> bool;

    /// Registers a surface of this host that sent a message. Returns an event with its place if that is new.
    fn register(&mut self, surface: &SurfaceId, tty: Option<&str>, scope: &str) -> Option<Event>;

    /// Turns a surface's ring on or off.
    fn ring(&mut self, _place: &Place, _lit: bool) {}

    /// Returns true if rings are marks in the titles of the terminals, which the hub writes.
    fn rings_by_title(&self) -> bool {
        false
    }

    /// Sets the number on a workspace.
    fn badge(&mut self, _workspace: &WorkspaceId, _badge: Badge) {}

    /// Flashes a pane.
    fn flash(&mut self, _place: &Place) {}

    /// Shows another toast, or none.
    fn toast(&mut self, _toast: Option<&Toast>) {}

    /// Brings a surface to the front. The surface need not be registered: its id is enough.
    fn focus(&mut self, place: &Place) -> FocusResult;

    /// Removes a surface that turned out to be gone.
    fn forget(&mut self, _surface: &SurfaceId) {}

    /// Returns the surfaces that have disappeared since the last call.
    fn gone(&mut self) -> Vec<SurfaceId> {
        Vec::new()
    }
}

/// The plug-ins of a hub.
#[derive(Default)]
pub struct PlugIns {
    /// The hosts.
    pub hosts: Vec<Box<dyn Host>>,
    /// The extensions.
    pub extensions: Vec<Box<dyn Extension>>,
    /// Passes on answers from popups. Without it, the hub refuses them.
    pub answerer: Option<Arc<dyn Answerer>>,
    /// Checks the senders of requests. Without it, every process of this user may send any request.
    pub guard: Option<Arc<dyn RequestGuard>>,
}
