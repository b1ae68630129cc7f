//! `ringer toast`.

use std::time::Duration;

use serde_json::json;

use crate::failure::Outcome;
use crate::hub_client;
use crate::time_arguments::parse_duration;

/// Show a short line in the inbox, panes and other hosts; it is not stored
///
/// Examples:
///   ringer toast "tests pass again"
///   ringer toast --priority high --key build "the build is red"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
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

pub(crate) fn run(arguments: &Args) -> Outcome {
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
