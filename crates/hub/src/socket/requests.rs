//! Requests: each method of the socket as one variant, read once when it arrives. `docs/protocol.md` describes them.

use std::time::Duration;

use ringer_core::agent::Signal;
use ringer_core::message::{Kind, Mark};
use ringer_core::toast::{Observation, Priority, Toast, ToastSpan, fold_named, fold_names};
use ringer_ipc::ApiError;
use serde::Deserialize;
use serde_json::Value;

use crate::hosts::protocol::{ConnectionId, HostRequest};
use crate::socket::params::{missing, one_or_several, read};
use crate::socket::subscriptions::EventFilter;

/// A request of a client.
#[derive(Debug)]
pub(crate) enum Request {
    Ping,
    Methods,
    Status,
    Reload,
    Environment(EnvironmentParams),
    ListNotifications(ListParams),
    /// Removes the notifications of a repository from the list, because its messages were removed from the journal.
    ForgetScope(String),
    Why(String),
    CreateNotification(Box<CreateParams>),
    Mark(Mark, TargetParams),
    DismissRead,
    Snooze(SnoozeParams),
    Mute(MuteParams),
    Unmute(MuteParams),
    ListMutes,
    Digest(DigestParams),
    Undo,
    OpenNotification(String),
    JumpToUnread,
    ListSurfaces,
    /// A request of a host.
    Host(ConnectionId, HostRequest),
    TerminalSignal(Box<SignalParams>),
    FocusSurface(TargetParams),
    ListWorkspaces,
    ListAgents,
    AddToast(ToastParams),
    RemoveToast(String),
    Observe(Vec<Observation>),
    Subscribe(EventFilter),
    /// A tmux server wants a host.
    TmuxFound(String),
}

type Reader = fn(Value) -> Result<Request, ApiError>;

/// The methods that the loop answers, each with its reader.
const METHODS: &[(&str, Reader)] = &[
    ("ping", |_| Ok(Request::Ping)),
    ("hub.status", |_| Ok(Request::Status)),
    ("hub.methods", |_| Ok(Request::Methods)),
    ("hub.reload", |_| Ok(Request::Reload)),
    ("hub.environment", |params| read(params).map(Request::Environment)),
    ("notification.list", |params| read(params).map(Request::ListNotifications)),
    ("notification.forget", |params| {
        let ListParams { scope, .. } = read(params)?;
        scope.map(Request::ForgetScope).ok_or_else(|| missing("scope"))
    }),
    ("notification.why", |params| {
        let TargetParams { id, .. } = read(params)?;
        id.map(Request::Why).ok_or_else(|| missing("id"))
    }),
    ("notification.create", |params| create(params, false)),
    ("notification.create_for_surface", |params| create(params, true)),
    ("notification.create_for_caller", |params| create(params, false)),
    ("notification.mark_read", |params| mark(Mark::Read, params)),
    ("notification.mark_unread", |params| mark(Mark::Unread, params)),
    ("notification.clear", |params| mark(Mark::Clear, params)),
    ("notification.dismiss", |params| {
        let target: TargetParams = read(params)?;
        match (&target.id, target.all_read) {
            (Some(_), _) => Ok(Request::Mark(Mark::Clear, target)),
            (None, true) => Ok(Request::DismissRead),
            (None, false) => Err(missing("id or all_read")),
        }
    }),
    ("notification.snooze", |params| read(params).map(Request::Snooze)),
    ("mute.set", |params| read(params).map(Request::Mute)),
    ("mute.remove", |params| read(params).map(Request::Unmute)),
    ("mute.list", |_| Ok(Request::ListMutes)),
    ("notification.digest", |params| read(params).map(Request::Digest)),
    ("notification.undo", |_| Ok(Request::Undo)),
    ("notification.open", |params| {
        let TargetParams { id, .. } = read(params)?;
        id.map(Request::OpenNotification).ok_or_else(|| missing("id"))
    }),
    ("notification.jump_to_unread", |_| Ok(Request::JumpToUnread)),
    ("surface.list", |_| Ok(Request::ListSurfaces)),
    ("surface.heard", |params| read(params).map(Request::TerminalSignal)),
    ("surface.focus", |params| read(params).map(Request::FocusSurface)),
    ("tmux.found", |params| {
        let TmuxSocket { socket } = read(params)?;
        Ok(Request::TmuxFound(socket))
    }),
    ("workspace.list", |_| Ok(Request::ListWorkspaces)),
    ("agent.list", |_| Ok(Request::ListAgents)),
    ("toast.add", |params| read(params).map(Request::AddToast)),
    ("toast.remove", |params| {
        let ToastKey { key } = read(params)?;
        Ok(Request::RemoveToast(key))
    }),
    ("observe", |params| one_or_several(params, "observations").map(Request::Observe)),
    ("events.subscribe", |params| read(params).map(Request::Subscribe)),
];

/// Returns the names of all methods. The server itself handles `hub.stop`.
pub fn method_names() -> Vec<&'static str> {
    METHODS.iter().map(|(name, _)| *name).chain(HostRequest::method_names()).chain(["hub.stop"]).collect()
}

impl Request {
    /// Reads a request of a connection.
    pub(crate) fn read(method: &str, params: Value, connection: ConnectionId) -> Result<Self, ApiError> {
        if let Some(reader) = HostRequest::reader(method) {
            return reader(params).map(|request| Self::Host(connection, request));
        }
        let found = METHODS.iter().find(|(name, _)| *name == method);
        let (_, reader) = found.ok_or_else(|| {
            ApiError::new("unknown_method", format!("unknown method {method:?}; hub.methods lists them"))
        })?;
        reader(params)
    }

    /// Records the process that sent the request.
    pub(crate) fn sent_by(mut self, peer: Option<u32>) -> Self {
        if let Self::CreateNotification(params) = &mut self {
            params.peer = peer;
        }
        self
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CreateParams {
    pub(crate) title: Option<String>,
    pub(crate) subtitle: Option<String>,
    pub(crate) body: String,
    pub(crate) kind: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) cwd: Option<String>,
    #[serde(alias = "preferred_workspace_id")]
    pub(crate) workspace_id: Option<String>,
    #[serde(alias = "preferred_surface_id")]
    pub(crate) surface_id: Option<String>,
    pub(crate) caller_tty: Option<String>,
    pub(crate) prefer_tty: bool,
    /// The sending process, as the kernel reports it. `None` for a process in another pid namespace.
    #[serde(skip)]
    pub(crate) peer: Option<u32>,
}

/// The target of a request: a notification, a place, or all notifications.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetParams {
    pub(crate) id: Option<String>,
    pub(crate) workspace_id: Option<String>,
    pub(crate) surface_id: Option<String>,
    pub(crate) all: bool,
    all_read: bool,
    /// An id that all marks of one command share, so that they are undone together.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SnoozeParams {
    /// Defaults to the most urgent unread notification.
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) until_unix_ms: i64,
}

/// The target of a mute: one of the first three fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MuteParams {
    pub(crate) agent: Option<String>,
    pub(crate) workspace_id: Option<String>,
    pub(crate) all: bool,
    /// If missing, the mute lasts until it is removed.
    pub(crate) until_unix_ms: Option<i64>,
    /// The kinds that are not muted.
    pub(crate) allow: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListParams {
    pub(crate) unread: bool,
    /// Lists only notifications that need the person, the most urgent first.
    pub(crate) needs_you: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) scope: Option<String>,
    pub(crate) workspace_id: Option<String>,
    pub(crate) surface_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DigestParams {
    /// Defaults to the time when the person last went away.
    pub(crate) since_unix_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct ToastKey {
    key: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToastParams {
    #[serde(default)]
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) text: String,
    /// The text as coloured spans, instead of `text`.
    #[serde(default)]
    pub(crate) spans: Vec<ToastSpan>,
    /// Keys of toasts that this one removes.
    #[serde(default)]
    pub(crate) invalidates: Vec<String>,
    /// How to merge it with a toast of the same key.
    #[serde(default)]
    pub(crate) fold: Option<String>,
    #[serde(default)]
    pub(crate) priority: Option<String>,
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
}

impl ToastParams {
    pub(crate) fn into_toast(self) -> Result<Toast, ApiError> {
        let priority = match self.priority.as_deref().unwrap_or("medium") {
            "immediate" => Priority::Immediate,
            "high" => Priority::High,
            "medium" => Priority::Medium,
            "low" => Priority::Low,
            other => {
                let why = format!("unknown priority {other:?} (known: immediate, high, medium, low)");
                return Err(ApiError::params(why));
            }
        };
        let mut toast = Toast::new(self.key.unwrap_or_default(), priority, self.text);
        if !self.spans.is_empty() {
            toast.spans = self.spans;
        }
        if toast.text().trim().is_empty() {
            return Err(ApiError::params("the text is empty"));
        }
        if toast.key.is_empty() {
            toast.key = toast.text();
        }
        toast.invalidates = self.invalidates;
        if let Some(name) = &self.fold {
            let fold = fold_named(name).ok_or_else(|| {
                let known: Vec<&str> = fold_names().collect();
                ApiError::params(format!("unknown fold {name:?} (known: {})", known.join(", ")))
            })?;
            toast.fold = Some(fold);
        }
        if let Some(ms) = self.timeout_ms {
            toast.timeout = Duration::from_millis(ms);
        }
        Ok(toast)
    }
}

#[derive(Debug, Deserialize)]
struct TmuxSocket {
    socket: String,
}

/// Output of a terminal: a bell, a notification, or a sign of its agent's state.
#[derive(Debug, Deserialize)]
pub(crate) struct SignalParams {
    pub(crate) surface_id: String,
    #[serde(default)]
    pub(crate) bell: bool,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// The kind of the text, if the host knows it.
    #[serde(default)]
    pub(crate) kind: Option<Kind>,
    /// The program's id of its notification.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// The lifetime in milliseconds.
    #[serde(default)]
    pub(crate) ttl_ms: Option<u64>,
    /// The program withdraws the notification with this `id`.
    #[serde(default)]
    pub(crate) withdrawn: bool,
    #[serde(default)]
    pub(crate) signal: Option<Signal>,
    /// The id of this report, if the host may have to repeat it.
    #[serde(default)]
    pub(crate) report: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EnvironmentParams {
    /// A session bus that the hub may use.
    pub(crate) bus: Option<String>,
}

fn create(params: Value, needs_surface: bool) -> Result<Request, ApiError> {
    let create: CreateParams = read(params)?;
    if needs_surface && create.surface_id.is_none() {
        return Err(missing("surface_id"));
    }
    Ok(Request::CreateNotification(Box::new(create)))
}

fn mark(mark: Mark, params: Value) -> Result<Request, ApiError> {
    read(params).map(|target| Request::Mark(mark, target))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_method_is_on_the_protocol_page() {
        let page = include_str!("../../../../docs/protocol.md");
        for name in method_names() {
            assert!(page.contains(&format!("`{name}`")), "{name} is not described in docs/protocol.md");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        fn check(method: &str, params: Value, code: &str, words: &str) {
            let error = Request::read(method, params, ConnectionId(1)).unwrap_err();
            assert_eq!((error.code.as_str(), error.message.contains(words)), (code, true), "{error:?}");
        }
        check("notification.opne", Value::Null, "unknown_method", "hub.methods");
        check("notification.open", Value::Null, "invalid_params", "id is missing");
        check("notification.create_for_surface", json!({ "body": "x" }), "invalid_params", "surface_id");
        check("notification.dismiss", json!({}), "invalid_params", "id or all_read");
        check("notification.list", json!({ "limit": "many" }), "invalid_params", "expected usize");
        check("surface.looks", json!({}), "invalid_params", "missing field `views`");
        assert!(matches!(Request::read("ping", Value::Null, ConnectionId(1)), Ok(Request::Ping)));
    }
}
