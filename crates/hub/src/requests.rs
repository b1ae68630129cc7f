//! Requests: every method of the socket, one row each. `docs/protocol.md` describes them.

use ringer_core::{
    Draft, Event, Kind, Looking, Mark, MessageId, Observation, Origin, Place, Priority, Recipient, Record,
    Scope, Sender, Sign, SurfaceId, Tag, Target, Toast, WorkspaceId,
};
use ringer_journal::Stamp;
use serde_json::{Value, json};

use crate::dispatch::Dispatcher;
use crate::events::Wanted;
use crate::input::Reply;
use crate::params::{About, AddToast, Create, Hears, Key, Listing, LooksAt, Subscribe, message_id, read};
use crate::protocol::Refusal;
use crate::view;

/// Notifications that one answer holds, unless it is asked for fewer.
const MAX_LISTED: usize = 1000;

type Answer = Result<Value, Refusal>;
type Method = fn(&mut Dispatcher, Value) -> Answer;

/// Every method but `events.subscribe`, which does not end.
const METHODS: &[(&str, Method)] = &[
    ("ping", |_, _| Ok(json!({ "pong": true }))),
    ("hub.status", |hub, _| Ok(hub.status())),
    ("hub.reload", |hub, _| Ok(json!({ "changed": hub.reload() }))),
    ("hub.methods", |_, _| Ok(json!(names()))),
    ("notification.create", |hub, params| hub.create(read(params)?)),
    ("notification.create_for_surface", |hub, params| {
        let create: Create = read(params)?;
        if create.surface_id.is_none() {
            return Err(Refusal::params("surface_id is missing"));
        }
        hub.create(create)
    }),
    ("notification.create_for_caller", |hub, params| hub.create(read(params)?)),
    ("notification.list", |hub, params| Ok(hub.list(&read(params)?))),
    ("notification.mark_read", |hub, params| hub.mark(Mark::Read, &read(params)?)),
    ("notification.mark_unread", |hub, params| hub.mark(Mark::Unread, &read(params)?)),
    ("notification.dismiss", |hub, params| hub.dismiss(&read(params)?)),
    ("notification.clear", |hub, params| hub.mark(Mark::Clear, &read(params)?)),
    ("notification.open", |hub, params| {
        let About { id, .. } = read(params)?;
        let id = id.ok_or_else(|| Refusal::params("id is missing"))?;
        hub.open(&message_id(&id)?)
    }),
    ("notification.jump_to_unread", |hub, _| hub.jump()),
    ("notification.why", |hub, params| hub.why(&read(params)?)),
    ("surface.list", |hub, _| {
        Ok(json!(hub.hosts.iter().flat_map(|host| host.surfaces()).collect::<Vec<_>>()))
    }),
    ("surface.focus", |hub, params| {
        let place = hub.place(&read(params)?)?;
        Ok(hub.focus(&place))
    }),
    ("surface.looks", |hub, params| Ok(hub.looks(&read(params)?))),
    ("surface.heard", |hub, params| hub.heard(read(params)?)),
    ("workspace.list", |hub, _| Ok(hub.workspaces())),
    ("agent.list", |hub, _| hub.agents()),
    ("toast.add", |hub, params| hub.toast(read(params)?)),
    ("toast.remove", |hub, params| {
        let Key { key } = read(params)?;
        hub.handle(Event::RemoveToast(key));
        Ok(json!({}))
    }),
    ("observe", |hub, params| {
        let observation: Observation = read(params)?;
        if !ringer_core::source_names().any(|name| name == observation.source) {
            let known: Vec<&str> = ringer_core::source_names().collect();
            let why = format!("there is no source {:?}; there are {}", observation.source, known.join(", "));
            return Err(Refusal::params(why));
        }
        hub.handle(Event::Observed(observation));
        Ok(json!({}))
    }),
];

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|(name, _)| *name).chain(["events.subscribe", "hub.stop"]).collect()
}

impl Dispatcher {
    /// Answers a request.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Reply, Refusal> {
        if method == "events.subscribe" {
            let Subscribe { after_seq, names } = read(params)?;
            let subscription = self.events.subscribe(Wanted { after_seq, names });
            return subscription
                .map(Reply::Subscribed)
                .ok_or_else(|| Refusal::new("busy", "too many follow already"));
        }
        let found = METHODS.iter().find(|(name, _)| *name == method);
        let (_, method) = found.ok_or_else(|| {
            Refusal::new("unknown_method", format!("there is no method {method:?}; hub.methods lists them"))
        })?;
        let value = method(self, params)?;
        Ok(match self.leads_there.take() {
            Some(argv) => Reply::Leads { argv, answer: value },
            None => Reply::Result(Ok(value)),
        })
    }

    fn create(&mut self, create: Create) -> Answer {
        let invalid = |error: ringer_core::InvalidWord| Refusal::params(error.to_string());
        let scope =
            create.scope.as_deref().map_or_else(|| Ok(Scope::global()), Scope::new).map_err(invalid)?;
        let sender =
            create.from.as_deref().map_or_else(|| Ok(Sender::system()), Sender::new).map_err(invalid)?;
        let kind: Kind = create.kind.as_deref().unwrap_or("status").parse().map_err(invalid)?;
        // A script for another ring terminal may send a title alone.
        let body =
            if create.body.is_empty() { create.title.clone().unwrap_or_default() } else { create.body };
        let mut draft = Draft::new(scope, sender, kind, &body).map_err(invalid)?;
        draft.title = create.title;
        draft.subtitle = create.subtitle;
        draft.recipient =
            create.to.as_deref().map_or_else(|| Ok(Recipient::Default), Recipient::parse).map_err(invalid)?;
        draft.origin = Origin {
            tty: create.caller_tty,
            cwd: create.cwd,
            surface: create.surface_id,
            workspace: create.workspace_id,
            pane: create.prefer_tty.then(String::new),
            ..Origin::default()
        };
        draft.check().map_err(invalid)?;
        let id = self.put(&draft)?;
        Ok(json!({ "id": id }))
    }

    /// Appends, and takes what was appended.
    fn put(&mut self, draft: &Draft) -> Result<MessageId, Refusal> {
        let stamp = Stamp::now();
        let id = self
            .journal
            .append(draft, &stamp)
            .map_err(|error| Refusal::new("unavailable", error.to_string()))?;
        self.wake();
        self.feed();
        Ok(id)
    }

    fn list(&mut self, wanted: &Listing) -> Value {
        let most = wanted.limit.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        let fits = |record: &&Record| {
            let is = |wanted: &Option<String>, found: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
            };
            is(&wanted.scope, Some(record.scope.as_str()))
                && is(&wanted.workspace_id, Some(record.place.workspace.as_str()))
                && is(&wanted.surface_id, record.place.surface.as_ref().map(SurfaceId::as_str))
        };
        let store = self.engine.attention().store();
        let show = |record: &Record| view::notification(record, &self.clock);
        if !wanted.unread {
            return json!(store.newest().filter(fits).take(most).map(show).collect::<Vec<_>>());
        }
        // One that was marked unread again is the newest in that list, but not the newest.
        let mut unread: Vec<&Record> = store.newest_unread().filter(fits).collect();
        unread.sort_by(|one, two| two.id.cmp(&one.id));
        json!(unread.into_iter().take(most).map(show).collect::<Vec<_>>())
    }

    /// The place that is meant. A surface alone is enough where it is known in which workspace it stands.
    fn place(&self, about: &About) -> Result<Place, Refusal> {
        let surface = about.surface_id.as_deref().map(SurfaceId::new);
        let standing = |surface: &SurfaceId| {
            let hosted = self.hosts.iter().flat_map(|host| host.surfaces());
            let noted = self.engine.attention().store().newest().map(|record| &record.place);
            hosted
                .filter(|info| info.surface == *surface)
                .map(|info| info.workspace)
                .chain(
                    noted
                        .filter(|place| place.surface.as_ref() == Some(surface))
                        .map(|place| place.workspace.clone()),
                )
                .next()
        };
        let named = about.workspace_id.as_deref().map(WorkspaceId::new);
        match named.or_else(|| surface.as_ref().and_then(standing)) {
            Some(workspace) => Ok(Place { workspace, surface }),
            None if surface.is_some() => Err(Refusal::new("not_found", "no such surface is known")),
            None => Err(Refusal::params("id, workspace_id, surface_id or all is missing")),
        }
    }

    /// Marks are messages: this one writes it, and every reader of the journal applies it.
    fn mark(&mut self, mark: Mark, about: &About) -> Answer {
        let target = match (&about.id, about.all) {
            (Some(id), _) => {
                let id = message_id(id)?;
                if self.engine.attention().store().get(&id).is_none() {
                    return Err(Refusal::new("not_found", format!("there is no notification {id}")));
                }
                Target::Message(id)
            }
            (None, true) => Target::All,
            (None, false) => Target::Place(self.place(about)?),
        };
        let before = self.engine.attention().store().total_unread();
        let listed = self.engine.attention().store().len();
        self.put_mark(mark, &target)?;
        let store = self.engine.attention().store();
        Ok(json!({
            "read": before.saturating_sub(store.total_unread()),
            "removed": listed.saturating_sub(store.len()),
            "unread": store.total_unread(),
        }))
    }

    fn put_mark(&mut self, mark: Mark, target: &Target) -> Result<(), Refusal> {
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), "");
        draft.key = Some(target.to_string());
        self.put(&draft).map(drop)
    }

    fn dismiss(&mut self, about: &About) -> Answer {
        let listed = self.engine.attention().store().len();
        match (&about.id, about.all_read) {
            (Some(_), _) => return self.mark(Mark::Clear, about),
            (None, true) => self.put_mark(Mark::Clear, &Target::AllRead)?,
            (None, false) => return Err(Refusal::params("id or all_read is missing")),
        }
        Ok(json!({ "removed": listed.saturating_sub(self.engine.attention().store().len()) }))
    }

    /// Goes to where a notification rang, and reads it.
    pub(crate) fn open(&mut self, id: &MessageId) -> Answer {
        let found = self.engine.attention().store().get(id);
        let record = found
            .cloned()
            .ok_or_else(|| Refusal::new("not_found", format!("there is no notification {id}")))?;
        let focused = self.focus(&record.place);
        self.put_mark(Mark::Read, &Target::Message(id.clone()))?;
        Ok(json!({ "notification": view::notification(&record, &self.clock), "focus": focused }))
    }

    fn jump(&mut self) -> Answer {
        let newest = self.engine.attention().store().newest_unread().next().map(|record| record.id.clone());
        match newest {
            Some(id) => self.open(&id),
            None => Ok(Value::Null),
        }
    }

    fn why(&mut self, about: &About) -> Answer {
        let id = about.id.as_deref().ok_or_else(|| Refusal::params("id is missing"))?;
        self.settle();
        crate::why::explain(&self.journal, Some(&self.memory), id, &self.clock)
            .map_err(|error| Refusal::new("unavailable", error.to_string()))?
            .ok_or_else(|| Refusal::new("not_found", format!("the journal has no message {id}")))
    }

    fn looks(&mut self, at: &LooksAt) -> Value {
        self.handle(Event::Looks(Looking {
            app: at.app,
            workspace: at.workspace_id.as_deref().map(WorkspaceId::new),
            surface: at.surface_id.as_deref().map(SurfaceId::new),
        }));
        json!({})
    }

    fn heard(&mut self, hears: Hears) -> Answer {
        let surface = SurfaceId::new(&hears.surface_id);
        let sign = match (hears.signal, hears.body, hears.bell) {
            (Some(signal), ..) => Sign::Agent(signal),
            (None, Some(body), _) => Sign::Notified { title: hears.title, body },
            (None, None, true) => Sign::Bell,
            (None, None, false) => return Err(Refusal::params("bell, body or signal is missing")),
        };
        self.handle(Event::Heard { surface, sign });
        Ok(json!({}))
    }

    fn workspaces(&self) -> Value {
        let store = self.engine.attention().store();
        let noted = store.newest().map(|record| record.place.workspace.clone());
        let surfaces = self.hosts.iter().flat_map(|host| host.surfaces()).map(|info| info.workspace);
        let flagged = self.engine.attention().reasons().map(|(_, place)| place.workspace);
        let ids: std::collections::BTreeSet<WorkspaceId> = noted.chain(surfaces).chain(flagged).collect();
        json!(ids.iter().map(|id| view::workspace(&self.engine, id)).collect::<Vec<_>>())
    }

    fn agents(&self) -> Answer {
        let failed = |error: ringer_journal::Error| Refusal::new("unavailable", error.to_string());
        let inventory = self.journal.inventory(None, self.clock.now().wall_ms).map_err(failed)?;
        Ok(json!(crate::why::agents(&inventory, &self.clock)))
    }

    fn toast(&mut self, add: AddToast) -> Answer {
        let priority = match add.priority.as_deref().unwrap_or("medium") {
            "immediate" => Priority::Immediate,
            "high" => Priority::High,
            "medium" => Priority::Medium,
            "low" => Priority::Low,
            other => {
                return Err(Refusal::params(format!(
                    "there is no priority {other:?}; there are immediate, high, medium, low"
                )));
            }
        };
        if add.text.trim().is_empty() {
            return Err(Refusal::params("the text is empty"));
        }
        let key = add.key.unwrap_or_else(|| add.text.clone());
        let mut toast = Toast::new(key, priority, add.text);
        if let Some(ms) = add.timeout_ms {
            toast.timeout = std::time::Duration::from_millis(ms);
        }
        self.handle(Event::Toast(toast));
        Ok(json!({}))
    }

    fn status(&mut self) -> Value {
        let unread = self.engine.attention().store().total_unread();
        json!({
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "home": self.journal.home().path(),
            "unread": unread,
            "listed": self.engine.attention().store().len(),
            "undecided": self.engine.undecided(),
            "under_way": self.under_way(),
            "followers": self.events.followers(),
            "cursor": self.cursor(),
            "toast": self.engine.toast().map(Toast::text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_on_the_protocol_page() {
        let page = include_str!("../../../docs/protocol.md");
        for name in names() {
            assert!(page.contains(&format!("`{name}`")), "{name} is not described in docs/protocol.md");
        }
    }
}
