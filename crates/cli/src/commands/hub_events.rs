//! `ringer watch`, `toast` and `observe`: the hub's events, its toasts, and observations for its sources.

use std::time::Duration;

use ringer_ipc::HubClientError;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::hub_client;
use crate::output::{eprint_line, print_json_text};
use crate::time_arguments::parse_duration;

/// Stream the hub's events as JSON lines
///
/// Examples:
///   ringer watch
///   ringer watch --after 0 --event notification | jq -r '.data.body // empty'
///   ringer watch --surface my-terminal:7 --event agent --event surface   # turns, signals
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WatchArgs {
    /// Start after this event number; 0 starts with the oldest kept event
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Show only events whose names start with this; repeat for more
    #[arg(long, value_name = "NAME")]
    event: Vec<String>,
    /// Show only events about this surface: its agent, its notifications, its ring, what its program wrote
    #[arg(long, value_name = "ID")]
    surface: Option<String>,
    /// Exit after N events
    #[arg(long, value_name = "N")]
    max: Option<usize>,
}

pub(crate) fn watch(arguments: &WatchArgs) -> Outcome {
    let mut client = hub_client::hub()?;
    let WatchArgs { after, event, surface, .. } = arguments;
    let params = json!({ "after_seq": after, "names": event, "surface_id": surface });
    let begun = client.call("events.subscribe", &params).map_err(hub_client::failure)?;
    if begun["gap"].as_bool() == Some(true) {
        eprint_line("warning: some older events are no longer kept");
    }
    client.wait_for_ever().map_err(hub_client::failure)?;
    let mut left = arguments.max.unwrap_or(usize::MAX);
    while left > 0
        && let Some(line) = client.next_line().map_err(hub_client::failure)?
    {
        let Ok(event) = serde_json::from_str::<Value>(&line) else {
            return Err(hub_client::failure(HubClientError::Nonsense));
        };
        // Heartbeats only keep the connection alive.
        if event["event"] != "heartbeat" {
            print_json_text(&line)?;
            left -= 1;
        }
    }
    Ok(())
}

/// Show a short line in the inbox, panes and other hosts; it is not stored
///
/// Examples:
///   ringer toast "tests pass again"
///   ringer toast --priority high --key build "the build is red"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ToastArgs {
    /// Text, or the key with --remove
    text: String,
    /// Replace the line with the same key [default: the text]
    #[arg(long)]
    key: Option<String>,
    /// Also remove the line with this key
    #[arg(long, value_name = "KEY")]
    invalidates: Vec<String>,
    /// Priority: immediate, high, medium or low
    #[arg(long, default_value = "medium")]
    priority: String,
    /// Hide it after this long: 500ms, 8s
    #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Remove the line with this key
    #[arg(long, conflicts_with_all = ["key", "invalidates", "priority", "timeout"])]
    remove: bool,
}

pub(crate) fn toast(arguments: &ToastArgs) -> Outcome {
    if arguments.remove {
        return hub_client::call("toast.remove", &json!({ "key": arguments.text })).map(drop);
    }
    let params = json!({
        "text": arguments.text,
        "key": arguments.key,
        "fold": arguments.key.as_ref().map(|_| "replace"),
        "invalidates": arguments.invalidates,
        "priority": arguments.priority,
        "timeout_ms": arguments.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
    });
    hub_client::call("toast.add", &params).map(drop)
}

/// Report a condition to a source: limits, deprecations, servers, plugins
///
/// The second argument is text, or a JSON object with text, subject, active, error,
/// session and remote (docs/footer.md).
///
/// Examples:
///   ringer observe mcp-connectivity "github is not reachable"
///   ringer observe language-server '{"subject":"rust-analyzer","text":"crashed","error":true}'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ObserveArgs {
    /// Source name; an unknown name lists the valid ones
    source: String,
    /// Condition to report
    #[arg(value_name = "TEXT|JSON")]
    observation: String,
}

pub(crate) fn observe(arguments: &ObserveArgs) -> Outcome {
    let text = arguments.observation.trim();
    let mut observation = if text.starts_with('{') {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Failure::new(Exit::Data, "the observation is not valid JSON").because(error))?
    } else {
        json!({ "text": text })
    };
    observation["source"] = json!(arguments.source);
    hub_client::call("observe", &observation).map(drop)
}
