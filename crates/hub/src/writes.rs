//! Requests that are answered in two steps: those that write, when what they wrote has come in, a message like any other; and
//! those that go somewhere, when the person is there.

use ringer_core::{
    Draft, Kind, Mark, MarkTarget, MessageId, MessageOrigin, Recipient, Record, Scope, Sender, Tag,
};
use ringer_journal::IdSource;
use serde_json::{Value, json};

use crate::dispatch::Dispatcher;
use crate::focus::{self, Went};
use crate::params::{About, Create, message_id, read};
use crate::perform::Job;
use crate::tmux::{TmuxPane, Unreachable};
use crate::view;
use ringer_ipc::ApiError;

/// The second step.
pub(crate) enum Outcome {
    /// The answer, once what was written has come in.
    Then(Box<dyn FnOnce(&Dispatcher) -> Value>),
    /// tmux brings the person to a pane; the answer says what came of it. Once they are there, a notification is read.
    Leads { pane: TmuxPane, opens: Option<MessageId>, answer: Finish },
}

/// Makes an answer of what came of going somewhere.
pub(crate) type Finish = Box<dyn FnOnce(Value) -> Value + Send>;

impl Outcome {
    fn then(answer: impl FnOnce(&Dispatcher) -> Value + 'static) -> Self {
        Self::Then(Box::new(answer))
    }
}

type Written = Result<Outcome, ApiError>;
type Write = fn(&mut Dispatcher, Value) -> Written;

/// Every method that is answered in two steps.
pub(crate) const WRITES: &[(&str, Write)] = &[
    ("hub.reload", |hub, _| Ok(hub.reload_all())),
    ("notification.create", |hub, params| hub.create(read(params)?)),
    ("notification.create_for_surface", |hub, params| {
        let create: Create = read(params)?;
        if create.surface_id.is_none() {
            return Err(ApiError::params("surface_id is missing"));
        }
        hub.create(create)
    }),
    ("notification.create_for_caller", |hub, params| hub.create(read(params)?)),
    ("notification.mark_read", |hub, params| hub.mark(Mark::Read, &read(params)?)),
    ("notification.mark_unread", |hub, params| hub.mark(Mark::Unread, &read(params)?)),
    ("notification.dismiss", |hub, params| hub.dismiss(&read(params)?)),
    ("notification.clear", |hub, params| hub.mark(Mark::Clear, &read(params)?)),
    ("notification.open", |hub, params| {
        let About { id, .. } = read(params)?;
        let id = id.ok_or_else(|| ApiError::params("id is missing"))?;
        hub.open(&message_id(&id)?)
    }),
    ("notification.jump_to_unread", |hub, _| hub.jump()),
    ("surface.focus", |hub, params| {
        let place = hub.place(&read(params)?)?;
        Ok(match hub.focus(&place) {
            Went::At(went) => Outcome::then(move |_| focus::view(went)),
            Went::By(pane) => Outcome::Leads { pane, opens: None, answer: Box::new(|went| went) },
        })
    }),
];

impl Dispatcher {
    /// Looks at all settings. Those of repositories are a scout's, and come with the next batch.
    fn reload_all(&mut self) -> Outcome {
        let before = self.applied;
        self.reload();
        self.look_at_known = true;
        Outcome::then(move |hub| json!({ "changed": hub.applied != before }))
    }

    fn create(&mut self, create: Create) -> Written {
        let invalid = |error: ringer_core::InvalidName| ApiError::params(error.to_string());
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
        draft.origin = MessageOrigin {
            tty: create.caller_tty,
            cwd: create.cwd,
            surface: create.surface_id,
            workspace: create.workspace_id,
            pane: create.prefer_tty.then(String::new),
            ..MessageOrigin::default()
        };
        draft.check().map_err(invalid)?;
        let id = self.put(&draft)?;
        Ok(Outcome::then(move |_| json!({ "id": id })))
    }

    fn put(&mut self, draft: &Draft) -> Result<MessageId, ApiError> {
        let stamp = IdSource::now();
        let id = self
            .journal
            .append(draft, &stamp)
            .map_err(|error| ApiError::new("unavailable", error.to_string()))?;
        self.wake();
        Ok(id)
    }

    /// Marks are messages: this one writes it, and every reader of the journal applies it.
    fn mark(&mut self, mark: Mark, about: &About) -> Written {
        let target = match (&about.id, about.all) {
            (Some(id), _) => {
                let id = message_id(id)?;
                if self.engine.attention().store().get(&id).is_none() && !self.is_to_be_read(&id) {
                    return Err(ApiError::new("not_found", format!("there is no notification {id}")));
                }
                MarkTarget::Message(id)
            }
            (None, true) => MarkTarget::All,
            (None, false) => MarkTarget::Place(self.place(about)?),
        };
        let before = self.engine.attention().store().total_unread();
        let listed = self.engine.attention().store().len();
        self.put_mark(mark, &target)?;
        Ok(Outcome::then(move |hub| {
            let store = hub.engine.attention().store();
            json!({
                "read": before.saturating_sub(store.total_unread()),
                "removed": listed.saturating_sub(store.len()),
                "unread": store.total_unread(),
            })
        }))
    }

    /// Whether a message is in the journal and the hub has not come to it yet. A mark comes after it, so it counts.
    fn is_to_be_read(&mut self, id: &MessageId) -> bool {
        let message = self.journal.message(id.as_str()).ok().flatten();
        message.is_some_and(|message| message.seq > self.cursor())
    }

    fn put_mark(&mut self, mark: Mark, target: &MarkTarget) -> Result<(), ApiError> {
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), "");
        draft.key = Some(target.to_string());
        self.put(&draft).map(drop)
    }

    fn dismiss(&mut self, about: &About) -> Written {
        let listed = self.engine.attention().store().len();
        match (&about.id, about.all_read) {
            (Some(_), _) => return self.mark(Mark::Clear, about),
            (None, true) => self.put_mark(Mark::Clear, &MarkTarget::AllRead)?,
            (None, false) => return Err(ApiError::params("id or all_read is missing")),
        }
        Ok(Outcome::then(
            move |hub| json!({ "removed": listed.saturating_sub(hub.engine.attention().store().len()) }),
        ))
    }

    /// Goes to where a notification rang. It is read once the person is there: one who did not get there has not seen it.
    fn open(&mut self, id: &MessageId) -> Written {
        let record = self.record(id)?;
        let notification = view::notification(&record, &self.clock);
        let answer = move |went| json!({ "notification": notification, "focus": went });
        match self.focus(&record.place) {
            Went::At(went) => {
                if went.is_ok() {
                    self.read_by_going(id)?;
                }
                let answer = answer(focus::view(went));
                Ok(Outcome::then(move |_| answer))
            }
            Went::By(pane) => Ok(Outcome::Leads { pane, opens: Some(id.clone()), answer: Box::new(answer) }),
        }
    }

    /// The person clicked "Show" on a popup.
    pub(crate) fn show(&mut self, id: MessageId) {
        let went = match self.record(&id) {
            // It came from no terminal: the popup is all there is to see, and the person saw it.
            Ok(record) if record.place.surface.is_none() => Went::At(Ok("desktop")),
            Ok(record) => self.focus(&record.place),
            Err(refusal) => Went::At(Err(Unreachable::new(refusal.message))),
        };
        match went {
            Went::At(went) => self.shown(&id, went.map(drop)),
            Went::By(pane) => self.perform(Job::Show { id, pane }),
        }
    }

    /// The person went to where a notification rang: it is read.
    pub(crate) fn read_by_going(&mut self, id: &MessageId) -> Result<(), ApiError> {
        self.put_mark(Mark::Read, &MarkTarget::Message(id.clone()))
    }

    fn record(&mut self, id: &MessageId) -> Result<Record, ApiError> {
        let found = self.engine.attention().store().get(id).cloned();
        found.ok_or_else(|| {
            if self.is_to_be_read(id) {
                ApiError::new("busy", "the hub is still reading older messages, and has not come to this one")
            } else {
                ApiError::new("not_found", format!("there is no notification {id}"))
            }
        })
    }

    fn jump(&mut self) -> Written {
        let newest = self.engine.attention().store().newest_unread().next().map(|record| record.id.clone());
        match newest {
            Some(id) => self.open(&id),
            None => Ok(Outcome::then(|_| Value::Null)),
        }
    }
}
