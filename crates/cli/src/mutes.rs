//! The person's mutes: requests that change them, and their text.

use std::time::Duration;

use ringer_core::message::Place;
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_core::time::rounded_span_text;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::context;
use crate::failure::Outcome;
use crate::hub_client::Hub;
use crate::output::{print_json, print_line};

/// Describes a mute from the hub: `ci (40m left)`.
pub(crate) fn text(mute: &Value, now_ms: i64) -> String {
    let who = match (mute["agent"].as_str(), mute["workspace"].as_str()) {
        (Some(agent), _) => agent.to_owned(),
        (None, Some(workspace)) if workspace == here() => "this repository".to_owned(),
        (None, Some(workspace)) => workspace.to_owned(),
        (None, None) => "everything".to_owned(),
    };
    let allowed: Vec<&str> =
        mute["allow"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let except = if allowed.is_empty() { String::new() } else { format!(" except {}", allowed.join(", ")) };
    let left = mute["until_unix_ms"].as_i64().map(|until| {
        let left = Duration::from_millis(u64::try_from(until.saturating_sub(now_ms)).unwrap_or(0));
        format!("{} left", rounded_span_text(left))
    });
    format!("{who}{except} ({})", left.as_deref().unwrap_or("until you end it"))
}

pub(crate) fn here() -> String {
    let scope = context::scope(context::repository().as_ref());
    Place::own_workspace(scope.as_str()).workspace.to_string()
}

pub(crate) enum Change {
    Set(RequestedMute),
    /// Ends one mute, or all.
    End(Option<MuteTarget>),
}

impl Change {
    fn request(&self) -> (&'static str, Value) {
        let (method, target, mute) = match self {
            Self::Set(mute) => ("mute.set", Some(&mute.target), Some(mute)),
            Self::End(target) => ("mute.remove", target.as_ref(), None),
        };
        let mut params = match target {
            None => json!({}),
            Some(MuteTarget::All) => json!({ "all": true }),
            Some(MuteTarget::Agent(agent)) => json!({ "agent": agent }),
            Some(MuteTarget::Workspace(workspace)) => json!({ "workspace_id": workspace }),
        };
        if let Some(mute) = mute {
            params["until_unix_ms"] = json!(mute.until_unix_ms);
            params["allow"] = json!(mute.allow);
        }
        (method, params)
    }
}

/// Applies a change, and prints the mutes afterwards.
pub(crate) fn change(change: &Change, as_json: bool) -> Outcome {
    let (method, params) = change.request();
    // Setting the same mute twice changes nothing.
    print(&Hub::of_command()?.call(method, &params)?, as_json)
}

pub(crate) fn list(as_json: bool) -> Outcome {
    print(&Hub::offline()?.call("mute.list", &Value::Null)?, as_json)
}

fn print(muted: &Value, as_json: bool) -> Outcome {
    if as_json {
        return print_json(muted);
    }
    let now_ms = IdSource::now().unix_ms;
    let lines: Vec<String> = muted.as_array().into_iter().flatten().map(|mute| text(mute, now_ms)).collect();
    match lines.as_slice() {
        [] => print_line("Nothing is muted."),
        lines => print_line(&format!("muted: {}", sanitise_line(&lines.join(", ")))),
    }
}
