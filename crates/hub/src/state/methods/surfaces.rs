//! The methods about surfaces, their workspaces and the agents in them.

use std::collections::BTreeSet;

use ringer_core::agent::Signal;
use ringer_core::engine::{TerminalNotification, TerminalSignal};
use ringer_core::message::{Kind, Place, SurfaceId, WorkspaceId};
use ringer_core::{Event, MessageId};
use ringer_ipc::ApiError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::method::{Call, Handled, Method, NoParams, Result, TargetParams, unavailable};
use crate::state::HubState;
use crate::view;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("surface.list", |hub, _, _: NoParams| Ok(Handled::value(json!(hub.surfaces.list())))),
        Method::new("surface.heard", HubState::terminal_signal),
        Method::new("surface.focus", |hub, _, target: TargetParams| hub.focus_surface(&target)),
        Method::new("workspace.list", |hub, _, _: NoParams| Ok(Handled::value(hub.workspaces()))),
        Method::new("agent.list", |hub, _, _: NoParams| hub.agent_list().map(Handled::value)),
    ]
}

/// Output of a terminal: a bell, a notification, or a sign of its agent's state.
#[derive(Debug, Deserialize)]
struct SignalParams {
    surface_id: String,
    #[serde(default)]
    bell: bool,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    body: Option<String>,
    /// The kind of the text, if the host knows it.
    #[serde(default)]
    kind: Option<Kind>,
    /// The program's id of its notification.
    #[serde(default)]
    id: Option<String>,
    /// The lifetime in milliseconds.
    #[serde(default)]
    ttl_ms: Option<u64>,
    /// The name of the icon.
    #[serde(default)]
    icon: Option<String>,
    /// True if the program wants it shown only while the person does not look at the surface.
    #[serde(default)]
    unless_seen: bool,
    /// The program withdraws the notification with this `id`.
    #[serde(default)]
    withdrawn: bool,
    #[serde(default)]
    signal: Option<Signal>,
    /// The id of this report, if the host may have to repeat it.
    #[serde(default)]
    report: Option<String>,
}

impl HubState {
    /// Handles a report about a program. With an id, it is answered once it is in the journal.
    fn terminal_signal(&mut self, call: Call, params: SignalParams) -> Result<Handled> {
        let has_id = params.report.is_some();
        // Before the engine, which takes a repeated report for another one.
        self.refuse_if_unwritable(has_id)?;
        let surface = SurfaceId::new(&params.surface_id);
        let heard = json!({
            "surface": surface, "bell": params.bell, "title": params.title, "body": params.body, "kind": params.kind,
            "signal": params.signal,
        });
        let is_said = !params.withdrawn;
        let signal = match (params.signal, params.body, params.bell) {
            _ if params.withdrawn => {
                let id = params.id.ok_or_else(|| ApiError::params("id is missing"))?;
                TerminalSignal::Withdrawn { id }
            }
            (Some(signal), ..) => TerminalSignal::Agent(signal),
            (None, Some(body), _) => {
                if params.unless_seen && self.notifications.engine().is_seen(&surface) {
                    return Ok(Handled::nothing());
                }
                TerminalSignal::Notified(TerminalNotification {
                    title: params.title,
                    body,
                    kind: params.kind,
                    id: params.id,
                    ttl_ms: params.ttl_ms,
                    icon: params.icon,
                })
            }
            (None, None, true) => TerminalSignal::Bell,
            (None, None, false) => return Err(ApiError::params("bell, body or signal is missing")),
        };
        // The host of the surfaces inside reports the signal too, so it would be shown twice. Bells pass, because that host may
        // not know which pane rang.
        if signal != TerminalSignal::Bell && self.surfaces.shows_others(&surface) {
            return Ok(Handled::nothing());
        }
        if params.report.as_ref().is_some_and(|report| !self.recent_reports.is_new(report)) {
            return Ok(Handled::nothing());
        }
        if is_said {
            self.publish(call.now, "surface.heard", heard);
        }
        let report = params.report.and_then(|report| MessageId::parse(&report).ok());
        self.feed_engine(call.now, Event::TerminalSignal { surface, signal, report });
        // If it is the first one that cannot be written, it waits here, too. When it is repeated, it is recognised.
        if has_id {
            self.refuse_if_unwritable(has_id)?;
        }
        Ok(Handled::nothing())
    }

    /// Returns the place of a target. A surface alone is enough if its workspace is known.
    pub(in crate::state) fn place(&self, target: &TargetParams) -> Result<Place> {
        let surface = target.surface_id.as_deref().map(SurfaceId::new);
        let workspace_of = |surface: &SurfaceId| {
            let listed = || self.notifications.list().place_of(surface);
            let hosted = self.surfaces.workspace_of(surface);
            hosted.or_else(|| listed().map(|place| place.workspace.clone()))
        };
        let named = target.workspace_id.as_deref().map(WorkspaceId::new);
        match named.or_else(|| surface.as_ref().and_then(workspace_of)) {
            Some(workspace) => Ok(Place { workspace, surface }),
            None if surface.is_some() => Err(ApiError::new("not_found", "unknown surface")),
            None => Err(ApiError::params("id, workspace_id, surface_id or all is missing")),
        }
    }

    fn workspaces(&self) -> Value {
        let listed = self.notifications.list().workspaces().cloned();
        let surfaces = self.surfaces.counts();
        let flagged = self.notifications.attention().reasons().map(|(_, place)| place.workspace);
        let ids: BTreeSet<WorkspaceId> = listed.chain(surfaces.keys().cloned()).chain(flagged).collect();
        let row = |id: &WorkspaceId| {
            let count = surfaces.get(id).copied().unwrap_or(0);
            view::workspace(self.notifications.engine(), id, count)
        };
        json!(ids.iter().map(row).collect::<Vec<_>>())
    }

    fn agent_list(&mut self) -> Result<Value> {
        let agents = self.journal.agent_summaries().map_err(|error| unavailable(&error))?;
        Ok(json!(crate::why::agents(&agents, &self.clock)))
    }
}
