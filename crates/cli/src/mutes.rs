//! The person's mutes, as text and without a hub.

use std::time::Duration;

use ringer_core::message::{Mark, Place, Tag};
use ringer_core::policy::{EVERY_MUTE, MuteTarget, RequestedMute, RequestedMutes};
use ringer_core::time::rounded_span_text;
use ringer_core::{Draft, Scope, Sender};
use ringer_hub::{Clock, view};
use ringer_ipc::HubClientError;
use ringer_journal::{HubStore, IdSource, Journal};
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::{context, guard, hub_client};

/// Returns the current mutes: those that the last hub stored, with the marks that it has not read.
pub(crate) fn stored(journal: &mut Journal) -> Result<Vec<RequestedMute>, Failure> {
    let mut hub_store = HubStore::open_to_read(&context::home()?)?;
    let mut mutes = RequestedMutes::default();
    if let Some(hub_store) = &mut hub_store {
        mutes.restore(hub_store.mutes()?);
    }
    for message in journal.unread_by_hub(hub_store.as_mut())? {
        if let (Tag::Mark(mark), Some(key)) = (message.draft.tag, &message.draft.key) {
            mutes.apply_mark(mark, key, &message.draft.body);
        }
    }
    Ok(mutes.holding(IdSource::now().unix_ms).cloned().collect())
}

pub(crate) fn views(mutes: &[RequestedMute]) -> Value {
    let clock = Clock::local();
    json!(mutes.iter().map(|mute| view::mute(mute, &clock)).collect::<Vec<_>>())
}

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

    fn write(&self, journal: &mut Journal) -> Outcome {
        let command = IdSource::now().message_id();
        let (mark, key, text) = match self {
            Self::Set(mute) => (Mark::Mute, mute.target.to_string(), mute.mark_text(command.as_str())),
            Self::End(target) => {
                let key = target.as_ref().map_or_else(|| EVERY_MUTE.to_owned(), ToString::to_string);
                (Mark::Unmute, key, command.to_string())
            }
        };
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), &text);
        draft.key = Some(key);
        journal.append(&draft, &IdSource::now())?;
        Ok(())
    }
}

/// Applies a change, and prints the mutes afterwards. Without a hub the mark is appended to the journal, and the next hub
/// applies it.
pub(crate) fn change(change: &Change, as_json: bool) -> Outcome {
    let (method, params) = change.request();
    let answer = match hub_client::connect()? {
        Some(mut client) => match client.call(method, &params) {
            Ok(answer) => {
                hub_client::warn_if_behind(&client);
                Some(answer)
            }
            // The hub ended or stopped during the request. It may have applied it already; setting the same mute twice changes
            // nothing.
            Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => None,
            Err(error) => return Err(hub_client::failure(error)),
        },
        None => None,
    };
    let muted = if let Some(answer) = answer {
        answer
    } else {
        let mut journal = Journal::open(&context::home()?)?;
        guard::only_a_person(&mut journal, &Scope::global(), "change what is muted")?;
        change.write(&mut journal)?;
        views(&stored(&mut journal)?)
    };
    print(&muted, as_json)
}

pub(crate) fn list(as_json: bool) -> Outcome {
    let muted = match context::existing_journal()? {
        Some(mut journal) => views(&stored(&mut journal)?),
        None => json!([]),
    };
    print(&muted, as_json)
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
