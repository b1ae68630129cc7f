//! The methods that mute and unmute.

use ringer_core::engine::FeatureValue;
use ringer_core::message::{Mark, ShownKind, Tag, WorkspaceId};
use ringer_core::policy::{EVERY_MUTE, MAX_REQUESTED_MUTES, MuteTarget, RequestedMute};
use ringer_core::{Draft, Now, Scope, Sender};
use ringer_ipc::ApiError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::method::{Handled, Method, NoParams, Result};
use crate::state::HubState;
use crate::view;

/// The longest id of a workspace, in bytes, as for hosts.
const MAX_NAME: usize = 256;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("mute.set", |hub, call, params: MuteParams| hub.mute(call.now, &params)),
        Method::new("mute.remove", |hub, call, params: MuteParams| hub.unmute(call.now, &params)),
        Method::new("mute.list", |hub, call, _: NoParams| Ok(Handled::value(hub.mute_list(call.now)))),
    ]
}

/// The target of a mute: one of the first three fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MuteParams {
    agent: Option<String>,
    workspace_id: Option<String>,
    all: bool,
    /// If missing, the mute lasts until it is removed.
    until_unix_ms: Option<i64>,
    /// The kinds that are not muted.
    allow: Vec<String>,
}

impl HubState {
    /// Sets a mute. It is a mark, so it takes effect when the hub reads it.
    fn mute(&mut self, now: Now, params: &MuteParams) -> Result<Handled> {
        let target =
            target(params)?.ok_or_else(|| ApiError::params("agent, workspace_id or all is missing"))?;
        if params.until_unix_ms.is_some_and(|until| until <= now.wall_ms) {
            return Err(ApiError::params("until_unix_ms is in the past"));
        }
        let kinds = params.allow.iter().map(|kind| kind.parse::<ShownKind>());
        let allow = kinds.collect::<std::result::Result<_, _>>();
        let allow = allow.map_err(|error| ApiError::params(format!("allow: {error}")))?;
        let mutes = self.notifications.engine().mutes();
        if mutes.holding(now.wall_ms).count() >= MAX_REQUESTED_MUTES && !mutes.has_room_for(&target) {
            return Err(ApiError::params(format!("{MAX_REQUESTED_MUTES} mutes are set already")));
        }
        let mute = RequestedMute { target, until_unix_ms: params.until_unix_ms, allow };
        let command = self.ids(now).message_id();
        let draft = mark(Mark::Mute, &mute.target.to_string(), &mute.mark_text(command.as_str()));
        self.append_for_request(now, &draft)?;
        Ok(Handled::after_ingest(HubState::mute_list))
    }

    /// Removes a mute, or all of them.
    fn unmute(&mut self, now: Now, params: &MuteParams) -> Result<Handled> {
        let key = target(params)?.map_or_else(|| EVERY_MUTE.to_owned(), |target| target.to_string());
        let command = self.ids(now).message_id();
        self.append_for_request(now, &mark(Mark::Unmute, &key, command.as_str()))?;
        Ok(Handled::after_ingest(HubState::mute_list))
    }

    /// Lists the active mutes.
    fn mute_list(&self, now: Now) -> Value {
        let mutes = self.notifications.engine().mutes().holding(now.wall_ms);
        json!(mutes.map(|mute| view::mute(mute, &self.clock)).collect::<Vec<_>>())
    }

    pub(in crate::state) fn publish_mutes(&mut self, now: Now) {
        let muted = self.mute_list(now);
        self.publish(now, RequestedMute::FEATURE, json!({ "muted": muted }));
    }
}

fn mark(mark: Mark, key: &str, text: &str) -> Draft {
    let draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), text);
    Draft { key: Some(key.to_owned()), ..draft }
}

fn target(params: &MuteParams) -> Result<Option<MuteTarget>> {
    match (params.all, &params.agent, &params.workspace_id) {
        (false, None, None) => Ok(None),
        (true, None, None) => Ok(Some(MuteTarget::All)),
        (false, Some(agent), None) => {
            let agent = Sender::new(agent).map_err(|error| ApiError::params(error.to_string()))?;
            Ok(Some(MuteTarget::Agent(agent.to_string())))
        }
        (false, None, Some(id)) if (1..=MAX_NAME).contains(&id.len()) => {
            Ok(Some(MuteTarget::Workspace(WorkspaceId::new(id))))
        }
        (false, None, Some(_)) => {
            Err(ApiError::params(format!("workspace_id is empty or has more than {MAX_NAME} bytes")))
        }
        _ => Err(ApiError::params("only one of agent, workspace_id and all")),
    }
}
