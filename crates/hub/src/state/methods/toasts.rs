//! The methods that show toasts, and that pass on observations of their sources.

use std::time::Duration;

use ringer_core::Event;
use ringer_core::toast::{Observation, Priority, Toast, ToastSpan, fold_named, fold_names, source_names};
use ringer_ipc::ApiError;
use serde::Deserialize;
use serde_json::Value;

use super::method::{Call, Handled, Method, Result, one_or_several};
use crate::state::HubState;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("toast.add", HubState::add_toast),
        Method::new("toast.remove", |hub, call, ToastKey { key }| {
            hub.feed_engine(call.now, Event::RemoveToast(key));
            Ok(Handled::nothing())
        }),
        Method::new("observe", HubState::observe),
    ]
}

#[derive(Debug, Deserialize)]
struct ToastKey {
    key: String,
}

#[derive(Debug, Deserialize)]
struct ToastParams {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    text: String,
    /// The text as coloured spans, instead of `text`.
    #[serde(default)]
    spans: Vec<ToastSpan>,
    /// Keys of toasts that this one removes.
    #[serde(default)]
    invalidates: Vec<String>,
    /// How to merge it with a toast of the same key.
    #[serde(default)]
    fold: Option<String>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

impl ToastParams {
    fn into_toast(self) -> Result<Toast> {
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

impl HubState {
    fn add_toast(&mut self, call: Call, params: ToastParams) -> Result<Handled> {
        self.feed_engine(call.now, Event::Toast(params.into_toast()?));
        Ok(Handled::nothing())
    }

    fn observe(&mut self, call: Call, params: Value) -> Result<Handled> {
        let observations: Vec<Observation> = one_or_several(params, "observations")?;
        let is_known = |wanted: &Observation| source_names().any(|name| name == wanted.source);
        if let Some(unknown) = observations.iter().find(|observation| !is_known(observation)) {
            let known: Vec<&str> = source_names().collect();
            let why = format!("unknown source {:?} (known: {})", unknown.source, known.join(", "));
            return Err(ApiError::params(why));
        }
        for observation in observations {
            self.feed_engine(call.now, Event::Observed(observation));
        }
        Ok(Handled::nothing())
    }
}
