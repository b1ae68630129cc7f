//! What a program plugs into a hub: hosts, which own surfaces and draw rings on them, extensions, which act on what the hub
//! reads, and what gives answers to agents. Here, so that none has to know the hub, and the hub knows none.

use std::sync::Arc;

use ringer_core::Event;
use ringer_core::agent::PopupAnswer;
use ringer_core::attention::{Badge, OnePane};
use ringer_core::message::{Agent, MessageId, Place, QuestionId, SurfaceId, WorkspaceId};
use ringer_core::policy::{McpChannels, RelayLink, RepositoryName};
use ringer_core::toast::Toast;

/// A surface, as its host knows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SurfaceInfo {
    /// Its id.
    pub surface: SurfaceId,
    /// The workspace it stands in.
    pub workspace: WorkspaceId,
    /// Its terminal device.
    pub tty: Option<String>,
    /// Its host.
    pub host: String,
    /// Its title.
    pub title: Option<String>,
    /// Where it is, in words: `main:3`.
    pub place: Option<String>,
    /// The surface that it is inside of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SurfaceId>,
}

/// What came of wanting to go to a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FocusResult {
    /// The person is there.
    Done,
    /// The surface is a pane of tmux, which has to be asked: that takes time, so the hub does it.
    AskTmux,
    /// This host owns it, but cannot bring it to the front; the text says why.
    Cannot(String),
    /// This host does not own it.
    NotOwned,
}

/// Acts on what the hub reads. Every call returns at once: what takes time happens on a thread of the extension's own.
pub trait Extension: Send {
    /// A message for that agent is in the journal, or the agent has become idle with messages waiting.
    fn wake(&mut self, _agent: &Agent) {}

    /// A notification came from a surface, or the state of an agent on it changed: its first hook comes before any notification.
    fn heard_from(&mut self, _surface: &SurfaceId) {}

    /// A server of tmux, by its socket, wants a host.
    fn tmux_found(&mut self, _socket: &str) {}

    /// How rings show in windows of tmux with one pane, from now on.
    fn set_one_pane(&mut self, _one_pane: OnePane) {}

    /// Whether the titles of terminals are marked where they can be read back, from now on.
    fn set_title_marks(&mut self, _are_on: bool) {}

    /// The MCP servers that push messages, from now on.
    fn set_mcp_channels(&mut self, _channels: &McpChannels) {}

    /// The names that the person gave to repositories, from now on.
    fn set_repository_names(&mut self, _names: &[RepositoryName]) {}

    /// The links to other machines, from now on.
    fn set_relays(&mut self, _links: &[RelayLink]) {}

    /// An agent has started, has ended or is in another state.
    fn agents_changed(&mut self) {}

    /// The prompts of an agent, which are dialogs of its client, may have changed.
    fn prompts_changed(&mut self) {}

    /// Whether the hub has to run on for it.
    fn needs_hub(&self) -> bool {
        false
    }
}

/// What a notification asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// What an agent's client asks in a dialog; the key of the notification.
    Prompt(String),
    /// A question of `ringer ask`.
    Question(QuestionId),
    /// What an agent of another machine asks; the notification.
    Elsewhere(MessageId),
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The side that asked has it.
    Taken,
    /// It has not, or not as far as can be seen; the text says why.
    NotTaken(String),
    /// It can only be answered where it was asked; the text says why.
    OnlyThere(String),
}

/// Gives answers that the person gave with a popup.
pub trait Answerer: Send + Sync {
    /// Gives an answer, and waits until it is taken. The hub calls it on a thread of its own, for each answer another one.
    fn answer(&self, asked: &Asked, answer: &PopupAnswer) -> AnswerOutcome;
}

/// Decides which requests of the hub's socket are for the person alone.
pub trait RequestGuard: Send + Sync {
    /// Returns true if the sender of this request has to be checked.
    fn is_reserved(&self, method: &str) -> bool;

    /// Says why a process may not send a request, if it may not. `pid` is missing if the hub's namespace does not see it. May take
    /// seconds: the hub calls it on a thread of its own.
    fn check(&self, pid: Option<u32>, method: &str, params: &serde_json::Value) -> Result<(), String>;
}

/// Owns surfaces. Every call returns at once: what takes time happens elsewhere, and is reported with an
/// [`Event`].
pub trait Host: Send {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// The surfaces it has now. The one that spoke last comes first.
    fn surfaces(&self) -> Vec<SurfaceInfo>;

    /// One of them.
    fn surface(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        self.surfaces().into_iter().find(|info| info.surface == *surface)
    }

    /// Whether a surface is one of this host's, by its id.
    fn owns(&self, surface: &SurfaceId) -> bool;

    /// A message came from a surface of this host's. Gives where it stands, if that is news.
    fn register(&mut self, surface: &SurfaceId, tty: Option<&str>, scope: &str) -> Option<Event>;

    /// A surface's ring goes on or off.
    fn ring(&mut self, _place: &Place, _lit: bool) {}

    /// Whether a surface's ring is a sign in the title of its terminal, which the hub writes.
    fn rings_by_title(&self) -> bool {
        false
    }

    /// A workspace's number changes.
    fn badge(&mut self, _workspace: &WorkspaceId, _badge: Badge) {}

    /// A pane flashes.
    fn flash(&mut self, _place: &Place) {}

    /// Another toast is shown, or none.
    fn toast(&mut self, _toast: Option<&Toast>) {}

    /// Brings a surface to the front. It need not have been heard of: its id says what it is.
    fn focus(&mut self, place: &Place) -> FocusResult;

    /// A surface turned out to be gone.
    fn forget(&mut self, _surface: &SurfaceId) {}

    /// Surfaces that have gone since the last call.
    fn gone(&mut self) -> Vec<SurfaceId> {
        Vec::new()
    }
}

/// What a program plugs into a hub.
#[derive(Default)]
pub struct PlugIns {
    /// The hosts.
    pub hosts: Vec<Box<dyn Host>>,
    /// The extensions.
    pub extensions: Vec<Box<dyn Extension>>,
    /// What gives answers of popups. Without it they are not given.
    pub answerer: Option<Arc<dyn Answerer>>,
    /// Checks who sends requests. Without it, every process of this user may send all of them.
    pub guard: Option<Arc<dyn RequestGuard>>,
}
