//! `ringer toast`.

use std::time::Duration;

use serde_json::json;

use crate::failure::Outcome;
use crate::link;
use crate::span::parse_span;

/// Show a short line in the footer; it is never stored
///
/// Examples:
///   ringer toast "tests pass again"
///   ringer toast --priority high --key build "the build is red"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The line
    text: String,
    /// What it is about: of one key only one is shown [default: the text]
    #[arg(long)]
    key: Option<String>,
    /// immediate, high, medium or low
    #[arg(long, default_value = "medium")]
    priority: String,
    /// How long it stays: 500ms, 8s
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    timeout: Option<Duration>,
    /// Take the toast of this key away instead
    #[arg(long, conflicts_with_all = ["key", "priority", "timeout"])]
    remove: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.remove {
        return link::call("toast.remove", &json!({ "key": arguments.text })).map(drop);
    }
    let params = json!({
        "text": arguments.text,
        "key": arguments.key,
        "priority": arguments.priority,
        "timeout_ms": arguments.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
    });
    link::call("toast.add", &params).map(drop)
}
