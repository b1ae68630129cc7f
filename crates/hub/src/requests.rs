//! Requests: every method of the socket, one row each; those in two steps are in `writes`. `docs/protocol.md` describes them.

use ringer_core::{
    Event, FocusState, MessageId, Observation, Place, Priority, Record, SurfaceId, TerminalSignal, Toast,
    WorkspaceId,
};
use serde_json::{Value, json};

use crate::dispatch::{Dispatcher, search_path};
use crate::events::Wanted;
use crate::input::Reply;
use crate::params::{About, AddToast, Hears, Key, Listing, LooksAt, Offer, Subscribe, observations, read};
use crate::view;
use crate::writes::{Outcome, WRITES};
use ringer_ipc::ApiError;

/// Notifications that one answer holds, unless it is asked for fewer.
const MAX_LISTED: usize = 1000;

type Answer = Result<Value, ApiError>;
type Method = fn(&mut Dispatcher, Value) -> Answer;

/// What somebody who waits for an answer wants.
pub(crate) enum Asked {
    /// A method.
    Call { method: String, params: Value },
    /// What came of a method's first step, once what it wrote has come in.
    Outcome(Outcome),
}

/// What a request comes to.
pub(crate) enum Said {
    /// The answer.
    Now(Reply),
    /// Something was written; this is to be asked when that has come in.
    Then(Asked),
}

/// Every method that is answered at once, but `events.subscribe`, which does not end, and `hub.environment`, for which the
/// desktop is asked.
const METHODS: &[(&str, Method)] = &[
    ("ping", |_, _| Ok(json!({ "pong": true }))),
    ("hub.status", |hub, _| Ok(hub.status())),
    ("hub.methods", |_, _| Ok(json!(names()))),
    ("notification.list", |hub, params| Ok(hub.list(&read(params)?))),
    ("notification.forget", |hub, params| hub.forget_scope(&read(params)?)),
    ("notification.why", |hub, params| hub.why(&read(params)?)),
    ("surface.list", |hub, _| {
        Ok(json!(hub.hosts.iter().flat_map(|host| host.surfaces()).collect::<Vec<_>>()))
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
    ("observe", |hub, params| hub.observe(observations(params)?)),
];

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    let said = METHODS.iter().map(|(name, _)| *name);
    said.chain(WRITES.iter().map(|(name, _)| *name))
        .chain(["events.subscribe", "hub.environment", "hub.stop"])
        .collect()
}

impl Dispatcher {
    /// Answers a request, or does the first half of it.
    pub(crate) fn call(&mut self, asked: Asked) -> Said {
        let said = match asked {
            Asked::Call { method, params } => self.call_method(&method, params),
            Asked::Outcome(Outcome::Then(then)) => Ok(Said::Now(Reply::Result(Ok(then(self))))),
            Asked::Outcome(Outcome::Leads { pane, opens, answer }) => {
                Ok(Said::Now(Reply::Leads { pane, opens, answer }))
            }
        };
        said.unwrap_or_else(|refusal| Said::Now(Reply::Result(Err(refusal))))
    }

    fn call_method(&mut self, method: &str, params: Value) -> Result<Said, ApiError> {
        if method == "events.subscribe" {
            let Subscribe { after_seq, names } = read(params)?;
            let subscription = self.events.subscribe(Wanted { after_seq, names });
            return subscription
                .map(|subscription| Said::Now(Reply::Subscribed(subscription)))
                .ok_or_else(|| ApiError::new("busy", "too many follow already"));
        }
        if method == "hub.environment" {
            let Offer { bus } = read(params)?;
            return Ok(Said::Now(Reply::Environment { environment: self.environment(), offered: bus }));
        }
        if let Some((_, write)) = WRITES.iter().find(|(name, _)| *name == method) {
            return write(self, params).map(|outcome| Said::Then(Asked::Outcome(outcome)));
        }
        let found = METHODS.iter().find(|(name, _)| *name == method);
        let (_, method) = found.ok_or_else(|| {
            ApiError::new("unknown_method", format!("there is no method {method:?}; hub.methods lists them"))
        })?;
        method(self, params).map(|value| Said::Now(Reply::Result(Ok(value))))
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

    /// Takes everything of a repository off the list: its messages are gone from the journal.
    fn forget_scope(&mut self, wanted: &Listing) -> Answer {
        let scope = wanted.scope.as_deref().ok_or_else(|| ApiError::params("scope is missing"))?;
        let store = self.engine.attention().store();
        let of_scope = store.newest().filter(|record| record.scope == scope);
        let ids: Vec<MessageId> = of_scope.map(|record| record.id.clone()).collect();
        let removed = ids.len();
        for id in ids {
            self.handle(Event::Remove(id));
        }
        self.settle();
        Ok(json!({ "removed": removed }))
    }

    /// The place that is meant. A surface alone is enough where it is known in which workspace it stands.
    pub(crate) fn place(&self, about: &About) -> Result<Place, ApiError> {
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
            None if surface.is_some() => Err(ApiError::new("not_found", "no such surface is known")),
            None => Err(ApiError::params("id, workspace_id, surface_id or all is missing")),
        }
    }

    fn why(&mut self, about: &About) -> Answer {
        let id = about.id.as_deref().ok_or_else(|| ApiError::params("id is missing"))?;
        self.settle();
        crate::why::explain(&mut self.journal, Some(&mut self.memory), id, &self.clock)
            .map_err(|error| ApiError::new("unavailable", error.to_string()))?
            .ok_or_else(|| ApiError::new("not_found", format!("the journal has no message {id}")))
    }

    fn looks(&mut self, at: &LooksAt) -> Value {
        self.handle(Event::FocusChanged(FocusState {
            app: at.app,
            workspace: at.workspace_id.as_deref().map(WorkspaceId::new),
            surface: at.surface_id.as_deref().map(SurfaceId::new),
        }));
        json!({})
    }

    fn heard(&mut self, hears: Hears) -> Answer {
        let surface = SurfaceId::new(&hears.surface_id);
        let sign = match (hears.signal, hears.body, hears.bell) {
            (Some(signal), ..) => TerminalSignal::Agent(signal),
            (None, Some(body), _) => TerminalSignal::Notified { title: hears.title, body },
            (None, None, true) => TerminalSignal::Bell,
            (None, None, false) => return Err(ApiError::params("bell, body or signal is missing")),
        };
        self.handle(Event::TerminalSignal { surface, signal: sign });
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

    fn agents(&mut self) -> Answer {
        let failed = |error: ringer_journal::Error| ApiError::new("unavailable", error.to_string());
        let stats = self.journal.stats(None, self.clock.now().wall_ms).map_err(failed)?;
        Ok(json!(crate::why::agents(&stats, &self.clock)))
    }

    fn toast(&mut self, add: AddToast) -> Answer {
        let priority = match add.priority.as_deref().unwrap_or("medium") {
            "immediate" => Priority::Immediate,
            "high" => Priority::High,
            "medium" => Priority::Medium,
            "low" => Priority::Low,
            other => {
                return Err(ApiError::params(format!(
                    "there is no priority {other:?}; there are immediate, high, medium, low"
                )));
            }
        };
        if add.text.trim().is_empty() {
            return Err(ApiError::params("the text is empty"));
        }
        let key = add.key.unwrap_or_else(|| add.text.clone());
        let mut toast = Toast::new(key, priority, add.text);
        if let Some(ms) = add.timeout_ms {
            toast.timeout = std::time::Duration::from_millis(ms);
        }
        self.handle(Event::Toast(toast));
        Ok(json!({}))
    }

    fn observe(&mut self, observations: Vec<Observation>) -> Answer {
        let is_known = |wanted: &Observation| ringer_core::source_names().any(|name| name == wanted.source);
        if let Some(unknown) = observations.iter().find(|observation| !is_known(observation)) {
            let known: Vec<&str> = ringer_core::source_names().collect();
            let why = format!("there is no source {:?}; there are {}", unknown.source, known.join(", "));
            return Err(ApiError::params(why));
        }
        for observation in observations {
            self.handle(Event::Observed(observation));
        }
        Ok(json!({}))
    }

    /// What the hub was given by the one who started it: its ways out work with that, and not with what a caller has.
    fn environment(&self) -> Value {
        let set = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        json!({
            "search_path": search_path().to_string_lossy(),
            "runtime_directory": set("XDG_RUNTIME_DIR"),
            "display": set("DISPLAY"),
            "wayland_display": set("WAYLAND_DISPLAY"),
            "terminals": self.hosts.iter().flat_map(|host| host.surfaces()).collect::<Vec<_>>(),
        })
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
            "behind": self.behind(),
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
