//! The methods that list, create and change notifications.

use ringer_core::attention::{Digest, MarkTarget, Record, local_first};
use ringer_core::message::{
    IdMatch, InvalidName, Mark, MessageOrigin, Place, ShownKind, SurfaceId, WorkspaceId,
};
use ringer_core::{Draft, Event, MessageId, Now, Recipient, Scope};
use ringer_ipc::ApiError;
use ringer_journal::{Error, SenderClaim, SenderError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::method::{Call, Handled, Method, NoParams, Result, TargetParams, unavailable};
use crate::message::Answer;
use crate::state::HubState;
use crate::state::journal_writes::mark_draft;
use crate::view::{self, ListedNotification};

/// The most notifications in one answer, and the default limit.
const MAX_LISTED: usize = 1000;

/// The most notifications to name if a text matches several.
const MAX_MATCHES: usize = 10;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("notification.list", |hub, _, params: ListParams| {
            Ok(Handled::Done(Answer::Notifications(hub.list(&params))))
        }),
        // Its messages were removed from the journal.
        Method::new("notification.forget", |hub, call, Forgotten { scope }| {
            Ok(Handled::value(hub.forget_scope(call.now, &scope)))
        }),
        Method::new("notification.why", |hub, call, Id { id }| hub.why(call.now, &id).map(Handled::value)),
        Method::new("notification.create", HubState::create),
        Method::new("notification.create_for_surface", |hub, call, params: CreateParams| {
            if params.surface_id.is_none() {
                return Err(ApiError::params("surface_id is missing"));
            }
            hub.create(call, params)
        }),
        Method::new("notification.create_for_caller", HubState::create),
        Method::new("notification.mark_read", |hub, call, target: TargetParams| {
            hub.mark(call.now, Mark::Read, &target)
        }),
        Method::new("notification.mark_unread", |hub, call, target: TargetParams| {
            hub.mark(call.now, Mark::Unread, &target)
        }),
        Method::new("notification.clear", |hub, call, target: TargetParams| {
            hub.mark(call.now, Mark::Clear, &target)
        }),
        Method::new("notification.dismiss", HubState::dismiss),
        Method::new("notification.snooze", |hub, call, params: SnoozeParams| hub.snooze(call.now, &params)),
        Method::new("notification.digest", |hub, call, params: DigestParams| {
            Ok(Handled::value(hub.digest(call.now.wall_ms, params.since_unix_ms)))
        }),
        Method::new("notification.undo", |hub, call, _: NoParams| hub.undo(call.now)),
        Method::new("notification.open", |hub, call, Id { id }| {
            let id = hub.named(&id)?;
            hub.open(call.now, &id)
        }),
        Method::new("notification.jump_to_unread", |hub, call, _: NoParams| hub.jump_to_unread(call.now)),
    ]
}

#[derive(Debug, Deserialize)]
struct Id {
    id: String,
}

#[derive(Debug, Deserialize)]
struct Forgotten {
    scope: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CreateParams {
    title: Option<String>,
    subtitle: Option<String>,
    body: String,
    kind: Option<String>,
    from: Option<String>,
    to: Option<String>,
    scope: Option<String>,
    cwd: Option<String>,
    #[serde(alias = "preferred_workspace_id")]
    workspace_id: Option<String>,
    #[serde(alias = "preferred_surface_id")]
    surface_id: Option<String>,
    caller_tty: Option<String>,
    prefer_tty: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListParams {
    unread: bool,
    /// Lists only notifications that need the person, the most urgent first.
    needs_you: bool,
    limit: Option<usize>,
    scope: Option<String>,
    workspace_id: Option<String>,
    surface_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DismissParams {
    id: Option<String>,
    all_read: bool,
    command: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SnoozeParams {
    /// Defaults to the most urgent unread notification.
    #[serde(default)]
    id: Option<String>,
    until_unix_ms: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DigestParams {
    /// Defaults to the time when the person last went away.
    since_unix_ms: Option<i64>,
}

impl HubState {
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
            self.feed_engine(now, Event::Remove(id));
        }
        let orders = self.notifications.forget_undo(scope);
        self.execute_orders(now, orders);
        json!({ "removed": removed })
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

    fn create(&mut self, call: Call, params: CreateParams) -> Result<Handled> {
        let invalid = |error: InvalidName| ApiError::params(error.to_string());
        let scope =
            params.scope.as_deref().map_or_else(|| Ok(Scope::global()), Scope::new).map_err(invalid)?;
        // Whoever connects here is a program: the person has a shell, a screen and devices.
        let claim = SenderClaim { from: params.from, inherited: None, is_program: true };
        let sender = self.journal.sender(call.peer, &claim).map_err(|error| match error {
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
        let id = self.append_for_request(call.now, &draft)?;
        Ok(Handled::after_ingest(move |_, _| json!({ "id": id })))
    }

    /// Appends a mark. Marks are messages, so every reader of the journal applies them.
    fn mark(&mut self, now: Now, mark: Mark, target: &TargetParams) -> Result<Handled> {
        let marked = match (&target.id, target.all) {
            (Some(id), _) => {
                let id = self.named(id)?;
                if self.notifications.get(&id).is_none() && !self.is_still_to_be_read(&id) {
                    return Err(ApiError::new("not_found", format!("unknown notification {id}")));
                }
                MarkTarget::Message(id)
            }
            (None, true) => MarkTarget::All,
            (None, false) => MarkTarget::Place(self.place(target)?),
        };
        let (unread, listed) = self.counts();
        self.append_command(now, mark, &marked, target.command.as_deref())?;
        Ok(Handled::after_ingest(move |hub, _| {
            let (unread_now, listed_now) = hub.counts();
            json!({
                "read": unread.saturating_sub(unread_now),
                "unread_again": unread_now.saturating_sub(unread),
                "removed": listed.saturating_sub(listed_now),
                "unread": unread_now,
            })
        }))
    }

    /// Removes a notification, or all that are read, from the list.
    fn dismiss(&mut self, call: Call, params: DismissParams) -> Result<Handled> {
        let DismissParams { id, all_read, command } = params;
        if id.is_some() {
            return self.mark(
                call.now,
                Mark::Clear,
                &TargetParams { id, command, ..TargetParams::default() },
            );
        }
        if !all_read {
            return Err(ApiError::params("id or all_read is missing"));
        }
        let (_, listed) = self.counts();
        self.append_command(call.now, Mark::Clear, &MarkTarget::AllRead, None)?;
        Ok(Handled::after_ingest(move |hub, _| json!({ "removed": listed.saturating_sub(hub.counts().1) })))
    }

    /// The numbers of what is unread and of all notifications.
    fn counts(&self) -> (usize, usize) {
        (self.notifications.attention().unread_count(), self.notifications.list().len())
    }

    /// Appends a mark that the person can undo. The marks of one command share an id; a single mark gets a new one.
    fn append_command(
        &mut self,
        now: Now,
        mark: Mark,
        target: &MarkTarget,
        command: Option<&str>,
    ) -> Result<()> {
        let command = command.map(MessageId::parse).transpose();
        let command = command.map_err(|error| ApiError::params(format!("command: {error}")))?;
        let command = command.unwrap_or_else(|| self.ids(now).message_id());
        let draft = Draft { body: command.to_string(), ..mark_draft(mark, target) };
        self.append_for_request(now, &draft).map(drop)
    }

    /// Snoozes a notification.
    fn snooze(&mut self, now: Now, params: &SnoozeParams) -> Result<Handled> {
        let id = match &params.id {
            Some(id) => Some(self.named(id)?),
            None => self.most_urgent_unread(),
        };
        let Some(id) = id else { return Ok(Handled::after_ingest(|_, _| Value::Null)) };
        if self.record(&id)?.is_resolved {
            let short_id = self.notifications.list().short_id(&id).unwrap_or_else(|| id.to_string());
            return Err(ApiError::new("resolved", format!("notification {short_id} is over")));
        }
        if params.until_unix_ms <= now.wall_ms {
            return Err(ApiError::params("until_unix_ms is in the past"));
        }
        let mark = mark_draft(Mark::Snooze, &MarkTarget::Message(id.clone()));
        self.append_for_request(now, &Draft { body: params.until_unix_ms.to_string(), ..mark })?;
        Ok(Handled::after_ingest(move |hub, _| {
            json!(hub.notifications.get(&id).map(|record| hub.notifications.view(record, &hub.clock)))
        }))
    }

    /// Returns the digest since a time, or since the person last went away.
    fn digest(&self, now_ms: i64, since_ms: Option<i64>) -> Value {
        let list = self.notifications.list();
        let away = self.notifications.engine().away_period();
        let since_ms = view::digest_since(since_ms, away, now_ms);
        let records = list.newest().filter(|record| Digest::includes(record, since_ms)).collect();
        view::digest(since_ms, records, |id| list.short_id(id), &self.clock)
    }

    /// Undoes the last command.
    fn undo(&mut self, now: Now) -> Result<Handled> {
        let Some(kind) = self.notifications.engine().undo_log().last() else {
            let nothing = json!({ "undone": null, "unread": 0, "listed": 0 });
            return Ok(Handled::value(nothing));
        };
        let (unread, listed) = self.counts();
        self.append_for_request(now, &mark_draft(Mark::Undo, &MarkTarget::All))?;
        Ok(Handled::after_ingest(move |hub, _| {
            let (unread_now, listed_now) = hub.counts();
            json!({
                "undone": kind,
                "unread": unread_now.saturating_sub(unread),
                "listed": listed_now.saturating_sub(listed),
            })
        }))
    }

    /// Finds a notification by its id, its short id, `last` or a part of its id. Text that matches none is parsed as the id of a
    /// message that is not on the list.
    pub(in crate::state) fn named(&self, text: &str) -> Result<MessageId> {
        match self.notifications.list().named(text) {
            IdMatch::One(id) => Ok(id),
            IdMatch::Several(ids) => {
                let records = ids.iter().take(MAX_MATCHES).filter_map(|id| self.notifications.get(id));
                let matches: Vec<Value> =
                    records.map(|record| self.notifications.view(record, &self.clock)).collect();
                let what = format!("{text:?} fits {} notifications", ids.len());
                Err(ApiError { data: json!(matches), ..ApiError::new("ambiguous", what) })
            }
            IdMatch::Unknown if text == "last" => {
                Err(ApiError::new("not_found", "there are no notifications"))
            }
            IdMatch::Unknown => MessageId::parse(text).map_err(|error| ApiError::params(error.to_string())),
        }
    }

    fn most_urgent_unread(&self) -> Option<MessageId> {
        let unread = self.notifications.list().newest_unread();
        Record::most_urgent_unread(unread).map(|record| record.id.clone())
    }

    pub(in crate::state) fn append_for_request(&mut self, now: Now, draft: &Draft) -> Result<MessageId> {
        let ids = self.ids(now);
        let id = self.journal.append(draft, &ids).map_err(|error| unavailable(&error))?;
        self.ingest.schedule();
        Ok(id)
    }

    /// Returns true if a message is in the journal but not read yet. A mark on it will be read after it, so the mark is valid.
    pub(in crate::state) fn is_still_to_be_read(&mut self, id: &MessageId) -> bool {
        let message = self.journal.message(id.as_str()).ok().flatten();
        message.is_some_and(|message| message.seq > self.ingest.seq())
    }

    /// Returns a notification of the list.
    pub(in crate::state) fn record(&mut self, id: &MessageId) -> Result<Record> {
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
