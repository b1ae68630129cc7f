//! `ringer watch`.

use ringer_ipc::HubClientError;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::hub_client;
use crate::output::{eprint_line, print_json_text};

/// Stream the hub's events as JSON lines
///
/// Examples:
///   ringer watch
///   ringer watch --after 0 --event notification | jq -r '.data.body // empty'
///   ringer watch --surface my-terminal:7 --event agent --event surface   # turns, signals
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
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

pub(crate) fn run(arguments: &Args) -> Outcome {
    let mut client = hub_client::hub()?;
    let Args { after, event, surface, .. } = arguments;
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
