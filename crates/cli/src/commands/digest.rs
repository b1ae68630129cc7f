//! `ringer digest`.

use ringer_hub::Clock;
use ringer_journal::IdSource;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::output::{print_bytes, print_json};
use crate::table::{Row, Style, format_rows};
use crate::time_arguments::parse_since;

/// Show what came while you were away
///
/// Counts what is still unread or needs you, and lists it, most urgent first. Without
/// --since, it begins when you last went away, or a day ago if that is not known.
///
/// Examples:
///   ringer digest
///   ringer digest --since 2h
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Begin here: 10m, 2h, 2d ago, 2026-02-17, or 2026-02-17T14:30:05-0600
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let now_ms = IdSource::now().unix_ms;
    let since = arguments.since.as_deref().map(|since| parse_since(since, now_ms)).transpose();
    let since_ms = since.map_err(|error| Failure::usage(error).hint("ringer digest --since 2h"))?;
    let digest = Hub::of_command()?.call("notification.digest", &json!({ "since_unix_ms": since_ms }))?;
    // The table consists of safe texts, and may have colours.
    if arguments.json { print_json(&digest) } else { print_bytes(format_text(&digest, now_ms).as_bytes()) }
}

fn format_text(digest: &Value, now_ms: i64) -> String {
    let since = Clock::local().near(digest["since_unix_ms"].as_i64().unwrap_or(now_ms), now_ms);
    let rows = Row::all(digest["notifications"].as_array().map_or(&[], Vec::as_slice));
    if rows.is_empty() {
        return format!("Nothing unread since {since}.\n");
    }
    let counts = digest["text"].as_str().unwrap_or_default();
    format!("since {since}: {counts}\n{}", format_rows(&rows, false, Style::of_stdout()))
}
