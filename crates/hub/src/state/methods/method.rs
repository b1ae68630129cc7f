//! A method of the socket, and what its code gets and returns.

use ringer_core::message::SurfaceId;
use ringer_core::{MessageId, Now};
use ringer_ipc::ApiError;
use ringer_journal::Error;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use crate::hosts::protocol::ConnectionId;
use crate::message::Answer;
use crate::state::hosts::surfaces::FocusTarget;
use crate::state::{Finish, HubState};

pub(in crate::state) type Result<T> = std::result::Result<T, ApiError>;

/// Parameters of a method that has none.
pub(in crate::state) type NoParams = IgnoredAny;

/// The circumstances of a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::state) struct Call {
    pub(in crate::state) now: Now,
    /// The connection on which it came.
    pub(in crate::state) connection: ConnectionId,
    /// The process that sent it, as the kernel reports it. `None` for a process in another PID namespace.
    pub(in crate::state) peer: Option<u32>,
}

/// Reads the parameters and handles the call.
type Handler = dyn Fn(&mut HubState, Call, Value) -> Result<Handled> + Send + Sync;

/// A method of the socket.
pub(in crate::state) struct Method {
    pub(in crate::state) name: &'static str,
    pub(in crate::state) handle: Box<Handler>,
}

impl Method {
    pub(in crate::state) fn new<P: DeserializeOwned + 'static>(
        name: &'static str,
        handle: fn(&mut HubState, Call, P) -> Result<Handled>,
    ) -> Self {
        Self { name, handle: Box::new(move |hub, call, params| handle(hub, call, read(params)?)) }
    }
}

/// How a request is answered.
pub(in crate::state) enum Handled {
    Done(Answer),
    /// Answer once the hub has read the request's messages.
    AfterIngest(Finish),
    /// Answer once a host or a part has focused a surface. `opening` is the notification that the client asked to open.
    AfterFocus {
        target: FocusTarget,
        surface: SurfaceId,
        opening: Option<(MessageId, Value)>,
    },
}

impl Handled {
    pub(in crate::state) fn value(value: Value) -> Self {
        Self::Done(Answer::Value(Ok(value)))
    }

    pub(in crate::state) fn nothing() -> Self {
        Self::value(json!({}))
    }

    /// Answers once the hub has read the request's messages.
    pub(in crate::state) fn after_ingest(
        finish: impl FnOnce(&HubState, Now) -> Value + Send + 'static,
    ) -> Self {
        Self::AfterIngest(Box::new(|hub, now| Answer::Value(Ok(finish(hub, now)))))
    }
}

/// The target of a request: a notification, a place, or all notifications.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::state) struct TargetParams {
    pub(in crate::state) id: Option<String>,
    pub(in crate::state) workspace_id: Option<String>,
    pub(in crate::state) surface_id: Option<String>,
    pub(in crate::state) all: bool,
    /// An id that all marks of one command share, so that they are undone together.
    pub(in crate::state) command: Option<String>,
}

/// Reads parameters. Unknown ones are ignored.
fn read<P: DeserializeOwned>(params: Value) -> Result<P> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| ApiError::params(error.to_string()))
}

/// Reads one object, or several in one request, for clients that send without waiting for answers.
pub(in crate::state) fn one_or_several<P: DeserializeOwned>(mut params: Value, name: &str) -> Result<Vec<P>> {
    match params.get_mut(name) {
        Some(several) => read(several.take()),
        None => Ok(vec![read(params)?]),
    }
}

/// The error of a request that the journal did not accept.
pub(in crate::state) fn unavailable(error: &Error) -> ApiError {
    match error {
        Error::Busy { .. } => ApiError::new(
            "busy",
            "another process holds the journal's write lock: nothing was changed, try again",
        ),
        error => ApiError::new("unavailable", error.to_string()),
    }
}
