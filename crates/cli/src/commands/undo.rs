//! `ringer undo`.

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::hub_client::Hub;
use crate::output::{print_json, print_line};

/// Take your last `ringer read`, `clear` or `mute` back
///
/// What it read is unread again, what it cleared is on the list again, at the top, and
/// what is muted is as before (also after `mute --off` and `dnd`).
/// No popup is shown again. What has ended since, such as a question that was answered,
/// stays as it is. Run it again to go one command further back. The last 10 commands can
/// be taken back, each with its newest 1,000 notifications.
///
/// Examples:
///   ringer undo
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print one JSON object with what was undone and the counts
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let answer = Hub::of_command()?.call_once("notification.undo", &json!({}))?;
    if arguments.json {
        return print_json(&answer);
    }
    print_line(&undone_text(&answer))
}

/// Describes what the hub has undone.
pub(crate) fn undone_text(answer: &Value) -> String {
    let count = |name: &str| answer[name].as_i64().unwrap_or(0);
    match answer["undone"].as_str() {
        None => "Nothing to undo.".to_owned(),
        Some("mute") => "the last change of what is muted was taken back".to_owned(),
        Some("clear") => format!("{} back on the list", count("listed")),
        Some(_) => format!("{} unread again", count("unread")),
    }
}
