//! The methods about the hub itself, and the subscription to its events.

use ringer_core::toast::Toast;
use serde::Deserialize;
use serde_json::{Value, json};

use super::method::{Handled, Method, NoParams};
use crate::delivery::setup::search_path;
use crate::message::Answer;
use crate::socket::subscriptions::EventFilter;
use crate::state::HubState;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("ping", |_, _, _: NoParams| Ok(Handled::value(json!({ "pong": true })))),
        Method::new("hub.status", |hub, _, _: NoParams| Ok(Handled::Done(Answer::Status(hub.status())))),
        Method::new("hub.reload", |hub, call, _: NoParams| {
            let revision = hub.settings.revision();
            hub.reload_settings(call.now);
            hub.settings.recheck_repositories();
            Ok(Handled::after_ingest(move |hub, _| json!({ "changed": hub.settings.revision() != revision })))
        }),
        Method::new("hub.environment", |hub, _, params: EnvironmentParams| {
            Ok(Handled::Done(Answer::Environment { environment: hub.environment(), offered: params.bus }))
        }),
        Method::new("events.subscribe", |_, _, filter: EventFilter| {
            Ok(Handled::Done(Answer::Subscribe(filter)))
        }),
    ]
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EnvironmentParams {
    /// A session bus that the hub may use.
    bus: Option<String>,
}

impl HubState {
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
            "unread": self.notifications.attention().unread_count(),
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
}
