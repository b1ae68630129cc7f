//! Handles requests. A request that writes to the journal is answered once the hub has read its messages back.

use std::collections::BTreeSet;

use ringer_core::attention::{MarkTarget, Record, local_first};
use ringer_core::engine::TerminalSignal;
use ringer_core::message::{
    InvalidName, Mark, MessageOrigin, Named, Place, ShownKind, SurfaceId, WorkspaceId,
};
use ringer_core::toast::{Observation, Toast};
use ringer_core::{Draft, Event, MessageId, Now, Recipient, Scope};
use ringer_ipc::ApiError;
use ringer_journal::{Error, SenderClaim, SenderError};
use serde_json::{Value, json};

use super::HubState;
use super::hosts::host_focus::FocusWaiter;
use super::request_queue::{Continuation, QueuedRequest, RequestStep};
use crate::delivery::setup::search_path;
use crate::hosts::protocol::ConnectionId;
use crate::message::{Action, Answer};
use crate::socket::requests::{
    CreateParams, ListParams, Request, SignalParams, TargetParams, ToastParams, method_names,
};
use crate::view::{self, ListedNotification};

/// The most notifications in one answer, and the default limit.
const MAX_LISTED: usize = 1000;

/// The most notifications to name if a text matches several.
const MAX_MATCHES: usize = 10;

/// How a request is answered.
pub(super) enum Handled {
    Done(Answer),
    /// Answer once the hub has read the request's messages.
    AfterIngest(Continuation),
    /// Answer once a host has focused a surface. `opening` is the notification that the client asked to open.
    AfterFocus {
        host: ConnectionId,
        surface: SurfaceId,
        opening: Option<(MessageId, Value)>,
    },
}

pub(super) type Result<T> = std::result::Result<T, ApiError>;

pub(super) fn value(value: Value) -> Handled {
    Handled::Done(Answer::Value(Ok(value)))
}

impl HubState {
    /// Handles a request, or finishes one whose messages have been read.
    pub(super) fn answer_request(&mut self, now: Now, request: QueuedRequest) {
        let QueuedRequest { id, step, up_to, deadline } = request;
        let handled = match step {
            RequestStep::Handle(request) => {
                let handled = self.handle_request(now, request);
                handled.unwrap_or_else(|error| Handled::Done(Answer::Value(Err(error))))
            }
            RequestStep::Finish(continuation) => Handled::Done(self.finish_request(now, continuation)),
        };
        self.write_changes(now);
        match handled {
            Handled::Done(answer) => {
                let behind = self.unread_up_to(up_to);
                self.act(Action::Answer { id, answer, behind });
            }
            Handled::AfterIngest(continuation) => {
                // Waits for everything that it wrote, and for at least one more read of the journal.
                let up_to = self.journal.last_seq().unwrap_or(i64::MAX).max(self.ingest.seq() + 1);
                let step = RequestStep::Finish(continuation);
                self.requests.put_back(QueuedRequest { id, step, up_to, deadline });
                self.ingest.schedule();
            }
            Handled::AfterFocus { host, surface, opening } => {
                self.ask_host(now, host, surface, FocusWaiter::Request { id, up_to, opening });
            }
        }
    }

    fn handle_request(&mut self, now: Now, request: Request) -> Result<Handled> {
        Ok(match request {
            Request::Ping => value(json!({ "pong": true })),
            Request::Methods => value(json!(method_names())),
            Request::Status => Handled::Done(Answer::Status(self.status())),
            Request::Reload => {
                let revision = self.settings.revision();
                self.reload_settings(now);
                self.settings.recheck_repositories();
                Handled::AfterIngest(Continuation::Reloaded { revision })
            }
            Request::Environment(params) => {
                Handled::Done(Answer::Environment { environment: self.environment(), offered: params.bus })
            }
            Request::ListNotifications(params) => Handled::Done(Answer::Notifications(self.list(&params))),
            Request::ForgetScope(scope) => value(self.forget_scope(now, &scope)),
            Request::Why(id) => value(self.why(now, &id)?),
            Request::CreateNotification(params) => self.create(now, *params)?,
            Request::Mark(mark, target) => self.mark(now, mark, &target)?,
            Request::DismissRead => {
                let listed = self.notifications.list().len();
                self.append_command(now, Mark::Clear, &MarkTarget::AllRead, None)?;
                Handled::AfterIngest(Continuation::Dismissed { listed })
            }
            Request::Snooze(params) => self.snooze(now, &params)?,
            Request::Mute(params) => self.mute(now, &params)?,
            Request::Unmute(params) => self.unmute(now, &params)?,
            Request::ListMutes => value(self.mute_list(now.wall_ms)),
            Request::Digest(params) => value(self.digest(now.wall_ms, params.since_unix_ms)),
            Request::Undo => self.undo(now)?,
            Request::OpenNotification(id) => {
                let id = self.named(&id)?;
                self.open(now, &id)?
            }
            Request::JumpToUnread => self.jump_to_unread(now)?,
            Request::ListSurfaces => value(json!(self.surfaces.list())),
            Request::Host(connection, request) => self.host_request(now, connection, request)?,
            Request::TerminalSignal(params) => value(self.terminal_signal(now, *params)?),
            Request::FocusSurface(target) => self.focus_surface(&target)?,
            Request::ListWorkspaces => value(self.workspaces()),
            Request::ListAgents => value(self.agent_list()?),
            Request::AddToast(params) => value(self.add_toast(now, params)?),
            Request::RemoveToast(key) => {
                self.decide(now, Event::RemoveToast(key));
                value(json!({}))
            }
            Request::Observe(observations) => value(self.observe(now, observations)?),
            Request::Subscribe(filter) => Handled::Done(Answer::Subscribe(filter)),
            Request::TmuxFound(socket) => {
                self.agents.extensions().for_each(|extension| extension.tmux_found(&socket));
                value(json!({}))
            }
        })
    }

    /// Returns the answer to a request whose messages have been read.
    fn finish_request(&self, now: Now, continuation: Continuation) -> Answer {
        let list = self.notifications.list();
        let answer = match continuation {
            Continuation::Created { id } => json!({ "id": id }),
            Continuation::Marked { unread, listed } => json!({
                "read": unread.saturating_sub(list.total_unread()),
                "unread_again": list.total_unread().saturating_sub(unread),
                "removed": listed.saturating_sub(list.len()),
                "unread": list.total_unread(),
            }),
            Continuation::Dismissed { listed } => json!({ "removed": listed.saturating_sub(list.len()) }),
            Continuation::Undone { kind, unread, listed } => json!({
                "undone": kind,
                "unread": list.total_unread().saturating_sub(unread),
                "listed": list.len().saturating_sub(listed),
            }),
            Continuation::Snoozed { id } => {
                let record = self.notifications.get(&id);
                json!(record.map(|record| self.notifications.view(record, &self.clock)))
            }
            Continuation::Muted => self.mute_list(now.wall_ms),
            Continuation::Reloaded { revision } => json!({ "changed": self.settings.revision() != revision }),
            Continuation::Value(value) => value,
            Continuation::Focus { pane, opening } => return Answer::Focus { pane, opening },
        };
        Answer::Value(Ok(answer))
    }

    pub(super) fn most_urgent_unread(&self) -> Option<MessageId> {
        let unread = self.notifications.list().newest_unread();
        Record::most_urgent_unread(unread).map(|record| record.id.clone())
    }

    fn list(&self, params: &ListParams) -> Vec<ListedNotification> {
        let most = params.limit.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        let fits = |record: &&Record| {
            let is = |wanted: &Option<String>, found: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
            };
            is(&params.scope, Some(&*record.scope))
                && is(&params.workspace_id, Some(record.place.workspace.as_str()))
                && is(&params.surface_id, record.place.surface.as_ref().map(SurfaceId::as_str))
        };
        let list = self.notifications.list();
        let show = |record: &Record| ListedNotification {
            record: record.clone(),
            short_id: list.short_id(&record.id),
        };
        let wanted = |record: &&Record| (!params.unread || !record.is_read) && fits(record);
        if params.needs_you {
            let mut needing: Vec<&Record> = list.needs_person().filter(wanted).collect();
            needing.sort_by(|one, two| one.by_urgency(two));
            return needing.into_iter().take(most).map(show).collect();
        }
        // Uses the narrowest index: with 100,000 notifications, the loop has no time to look at all of them.
        let place = params.workspace_id.as_deref().map(|workspace| Place {
            workspace: WorkspaceId::new(workspace),
            surface: params.surface_id.as_deref().map(SurfaceId::new),
        });
        match (&place, &params.scope) {
            (Some(place), _) => list.newest_of(place).filter(wanted).take(most).map(show).collect(),
            (None, Some(scope)) => list.newest_in(scope).filter(wanted).take(most).map(show).collect(),
            // Notifications of this machine come first, however many other machines send.
            (None, None) => {
                let local = list.newest().filter(|record| record.machine.is_none() && wanted(record));
                let elsewhere = list.newest_elsewhere().filter(wanted);
                local_first(local.take(most), elsewhere.take(most), most).map(show).collect()
            }
        }
    }

    fn forget_scope(&mut self, now: Now, scope: &str) -> Value {
        let of_scope = self.notifications.list().newest_in(scope);
        let ids: Vec<MessageId> = of_scope.map(|record| record.id.clone()).collect();
        let removed = ids.len();
        for id in ids {
            self.decide(now, Event::Remove(id));
        }
        let orders = self.notifications.forget_undo(scope);
        self.execute_orders(now, orders);
        json!({ "removed": removed })
    }

    /// Returns the place of a target. A surface alone is enough if its workspace is known.
    pub(super) fn place(&self, target: &TargetParams) -> Result<Place> {
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

    fn why(&mut self, now: Now, id: &str) -> Result<Value> {
        self.write_changes(now);
        let id = self.named(id)?;
        let short_id = self.notifications.list().short_id(&id);
        let store = Some(self.notifications.store());
        crate::why::explain(&mut self.journal, store, id.as_str(), short_id.as_deref(), &self.clock)
            .map_err(|error| unavailable(&error))?
            .ok_or_else(|| ApiError::new("not_found", format!("unknown message {id}")))
    }

    /// Finds a notification by its id, its short id, `last` or a part of its id. Text that matches none is parsed as the id of a
    /// message that is not on the list.
    pub(super) fn named(&self, text: &str) -> Result<MessageId> {
        match self.notifications.list().named(text) {
            Named::One(id) => Ok(id),
            Named::Several(ids) => {
                let records = ids.iter().take(MAX_MATCHES).filter_map(|id| self.notifications.get(id));
                let matches: Vec<Value> =
                    records.map(|record| self.notifications.view(record, &self.clock)).collect();
                let what = format!("{text:?} fits {} notifications", ids.len());
                Err(ApiError { data: json!(matches), ..ApiError::new("ambiguous", what) })
            }
            Named::Unknown if text == "last" => Err(ApiError::new("not_found", "there are no notifications")),
            Named::Unknown => MessageId::parse(text).map_err(|error| ApiError::params(error.to_string())),
        }
    }

    fn terminal_signal(&mut self, now: Now, params: SignalParams) -> Result<Value> {
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
                let (title, kind, id, ttl_ms) = (params.title, params.kind, params.id, params.ttl_ms);
                TerminalSignal::Notified { title, body, kind, id, ttl_ms }
            }
            (None, None, true) => TerminalSignal::Bell,
            (None, None, false) => return Err(ApiError::params("bell, body or signal is missing")),
        };
        // The host of the surfaces inside reports the signal too, so it would be shown twice. Bells pass, because that host may
        // not know which pane rang.
        if signal != TerminalSignal::Bell && self.surfaces.shows_others(&surface) {
            return Ok(json!({}));
        }
        if params.report.as_ref().is_some_and(|report| !self.heard_reports.is_new(report)) {
            return Ok(json!({}));
        }
        if is_said {
            self.publish(now, "surface.heard", heard);
        }
        let report = params.report.and_then(|report| MessageId::parse(&report).ok());
        self.decide(now, Event::TerminalSignal { surface, signal, report });
        Ok(json!({}))
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

    fn add_toast(&mut self, now: Now, params: ToastParams) -> Result<Value> {
        self.decide(now, Event::Toast(params.into_toast()?));
        Ok(json!({}))
    }

    fn observe(&mut self, now: Now, observations: Vec<Observation>) -> Result<Value> {
        let is_known =
            |wanted: &Observation| ringer_core::toast::source_names().any(|name| name == wanted.source);
        if let Some(unknown) = observations.iter().find(|observation| !is_known(observation)) {
            let known: Vec<&str> = ringer_core::toast::source_names().collect();
            let why = format!("unknown source {:?} (known: {})", unknown.source, known.join(", "));
            return Err(ApiError::params(why));
        }
        for observation in observations {
            self.decide(now, Event::Observed(observation));
        }
        Ok(json!({}))
    }

    /// Returns the environment in which the hub was started. Its delivery channels use this one, not a client's.
    fn environment(&self) -> Value {
        let set = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        json!({
            "search_path": search_path().to_string_lossy(),
            "runtime_directory": set("XDG_RUNTIME_DIR"),
            "display": set("DISPLAY"),
            "wayland_display": set("WAYLAND_DISPLAY"),
            "terminals": self.surfaces.list(),
        })
    }

    fn status(&mut self) -> Value {
        let behind = self.journal.last_seq().map_or(0, |last| self.unread_up_to(last));
        let list = self.notifications.list();
        json!({
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "home": self.journal.home().path(),
            "unread": list.total_unread(),
            "needs_you": list.needs_person_count(),
            "listed": list.len(),
            "undecided": self.notifications.undecided(),
            "under_way": self.deliveries.count(),
            "cursor": self.ingest.seq(),
            "behind": behind,
            "toast": self.notifications.toast().map(Toast::text),
            "toast_spans": self.notifications.toast().map(|toast| &toast.spans),
            "indicators": self.indicators,
            "problems": self.problem_list(),
        })
    }

    fn create(&mut self, now: Now, params: CreateParams) -> Result<Handled> {
        let invalid = |error: InvalidName| ApiError::params(error.to_string());
        let scope =
            params.scope.as_deref().map_or_else(|| Ok(Scope::global()), Scope::new).map_err(invalid)?;
        // Whoever connects here is a program: the person has a shell, a screen and devices.
        let claim = SenderClaim { from: params.from, inherited: None, is_program: true };
        let sender = self.journal.sender(params.peer, &claim).map_err(|error| match error {
            Error::Sender(SenderError::Invalid(error)) => invalid(error),
            Error::Sender(error) => ApiError::new("no_permission", error.to_string()),
            error => unavailable(&error),
        })?;
        let kind: ShownKind = params.kind.as_deref().unwrap_or("status").parse().map_err(invalid)?;
        let (kind, category) = kind.stored();
        // Scripts for other ring terminals may send only a title.
        let body =
            if params.body.is_empty() { params.title.clone().unwrap_or_default() } else { params.body };
        let mut draft = Draft::new(scope, sender, kind, &body).map_err(invalid)?;
        draft.category = category.map(str::to_owned);
        draft.title = params.title;
        draft.subtitle = params.subtitle;
        draft.recipient =
            params.to.as_deref().map_or_else(|| Ok(Recipient::Default), Recipient::parse).map_err(invalid)?;
        draft.origin = MessageOrigin {
            tty: params.caller_tty,
            cwd: params.cwd,
            surface: params.surface_id,
            workspace: params.workspace_id,
            pane: params.prefer_tty.then(String::new),
            ..MessageOrigin::default()
        };
        draft.check().map_err(invalid)?;
        let id = self.append_for_request(now, &draft)?;
        Ok(Handled::AfterIngest(Continuation::Created { id }))
    }

    pub(super) fn append_for_request(&mut self, now: Now, draft: &Draft) -> Result<MessageId> {
        let ids = self.ids(now);
        let id = self.journal.append(draft, &ids).map_err(|error| unavailable(&error))?;
        self.ingest.schedule();
        Ok(id)
    }

    /// Returns true if a message is in the journal but not read yet. A mark on it will be read after it, so the mark is valid.
    pub(super) fn is_still_to_be_read(&mut self, id: &MessageId) -> bool {
        let message = self.journal.message(id.as_str()).ok().flatten();
        message.is_some_and(|message| message.seq > self.ingest.seq())
    }

    /// Returns a notification of the list.
    pub(super) fn record(&mut self, id: &MessageId) -> Result<Record> {
        let found = self.notifications.get(id).cloned();
        found.ok_or_else(|| {
            if self.is_still_to_be_read(id) {
                ApiError::new(
                    "busy",
                    "the hub is still processing older messages and has not reached this one",
                )
            } else {
                ApiError::new("not_found", format!("unknown notification {id}"))
            }
        })
    }
}

pub(super) fn unavailable(error: &Error) -> ApiError {
    match error {
        Error::Busy { .. } => ApiError::new(
            "busy",
            "another process holds the journal's write lock: nothing was changed, try again",
        ),
        error => ApiError::new("unavailable", error.to_string()),
    }
}
