//! `ringer list` and `ringer digest`.

use ringer_core::Scope;
use ringer_core::attention::Record;
use ringer_hub::{Clock, view};
use ringer_journal::{Filter, HubStore, IdSource};
use serde_json::{Value, json};

use super::log::text_line;
use super::questions;
use crate::context;
use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::notifications::ListedIds;
use crate::output::{print_bytes, print_json, print_text};
use crate::table::{Row, Style, format_rows};
use crate::time_arguments::parse_since;

/// List notifications, newest first
///
/// Examples:
///   ringer list
///   ringer list --unread --json | jq -r '.[].body'
///   ringer list --open              # questions that wait for an answer, oldest first
///   ringer list --search 'api build'
///   ringer list --all               # every message, including those never shown
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Show only unread notifications
    #[arg(long)]
    unread: bool,
    /// Show every message, including those replaced before they were shown
    #[arg(long, conflicts_with = "unread")]
    all: bool,
    /// Show open questions, oldest first; with --all closed ones, too
    #[arg(long, conflicts_with_all = ["unread", "search"])]
    open: bool,
    /// Show only notifications that contain all these words
    #[arg(long, value_name = "WORDS", conflicts_with = "all")]
    search: Option<String>,
    /// Show only this repository
    #[arg(long)]
    here: bool,
    /// Show every repository; that is the default
    #[arg(long, hide = true, conflicts_with = "here")]
    everywhere: bool,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.open {
        return questions::run(&questions::Args::new(arguments.all, arguments.here, arguments.json));
    }
    let scope = arguments.here.then(|| context::scope(context::repository().as_ref()));
    if arguments.all {
        return every_message(arguments, scope);
    }
    let rows = match &arguments.search {
        Some(words) => found(words, listed(arguments.unread, scope.as_ref(), usize::MAX)?, arguments.limit),
        None => listed(arguments.unread, scope.as_ref(), arguments.limit)?,
    };
    // The table consists of safe texts, and may have colours.
    if arguments.json {
        print_json(&rows)
    } else {
        print_bytes(format_text(&rows, arguments.unread, Style::of_stdout()).as_bytes())
    }
}

/// Returns the table of the newest notifications, or a line that says there are none.
pub(crate) fn overview(unread: bool, here: bool, limit: usize, style: Style) -> Result<String, Failure> {
    let scope = here.then(|| context::scope(context::repository().as_ref()));
    Ok(format_text(&listed(unread, scope.as_ref(), limit)?, unread, style))
}

/// Returns the first rows that contain all words, in any letter case.
fn found(words: &str, rows: Value, limit: usize) -> Value {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let Value::Array(rows) = rows else { return rows };
    let has_words = |row: &Value| {
        let texts =
            ["title", "subtitle", "body", "from", "label"].map(|name| row[name].as_str().unwrap_or_default());
        let text = texts.join("\n").to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    rows.into_iter().filter(has_words).take(limit).collect()
}

fn listed(unread: bool, scope: Option<&Scope>, limit: usize) -> Result<Value, Failure> {
    let params = json!({ "unread": unread, "limit": limit, "scope": scope.map(Scope::as_str) });
    Hub::of_command()?.call("notification.list", &params)
}

fn every_message(arguments: &Args, scope: Option<Scope>) -> Outcome {
    let clock = Clock::local();
    let home = context::home()?;
    let Some(mut journal) = context::existing_journal()? else {
        return if arguments.json { print_json(&json!([])) } else { Ok(()) };
    };
    let filter = Filter { scope, ..Filter::default() };
    let messages = journal.newest_matching(&filter, arguments.limit)?;
    if !arguments.json {
        let lines: String = messages.iter().map(|message| text_line(message, &clock) + "\n").collect();
        return print_text(&lines);
    }
    let ids = ListedIds::of(journal.message_ids()?.iter());
    let mut hub_store = HubStore::open_to_read(&home)?;
    let mut rows = Vec::new();
    for message in &messages {
        let remembered = hub_store.as_mut().map(|hub_store| hub_store.notification(message.id.as_str()));
        let remembered = remembered.transpose()?.flatten();
        // A message without a record was never shown, so there is nothing to read.
        let record =
            remembered.or_else(|| Record::of(message).map(|record| Record { is_read: true, ..record }));
        rows.extend(
            record.map(|record| view::notification(&record, ids.short_id(&record.id).as_deref(), &clock)),
        );
    }
    print_json(&rows)
}

fn format_text(rows: &Value, unread: bool, style: Style) -> String {
    let rows = Row::all(rows.as_array().map_or(&[], Vec::as_slice));
    match (rows.is_empty(), unread) {
        (true, true) => "No unread notifications.\n".to_owned(),
        (true, false) => "No notifications.\n".to_owned(),
        (false, _) => format_rows(&rows, true, style),
    }
}

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
pub(crate) struct DigestArgs {
    /// Begin here: 10m, 2h, 2d ago, 2026-02-17, or 2026-02-17T14:30:05-0600
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn digest(arguments: &DigestArgs) -> Outcome {
    let now_ms = IdSource::now().unix_ms;
    let since = arguments.since.as_deref().map(|since| parse_since(since, now_ms)).transpose();
    let since_ms = since.map_err(|error| Failure::usage(error).hint("ringer digest --since 2h"))?;
    let digest = Hub::of_command()?.call("notification.digest", &json!({ "since_unix_ms": since_ms }))?;
    // The table consists of safe texts, and may have colours.
    if arguments.json { print_json(&digest) } else { print_bytes(digest_text(&digest, now_ms).as_bytes()) }
}

fn digest_text(digest: &Value, now_ms: i64) -> String {
    let since = Clock::local().near(digest["since_unix_ms"].as_i64().unwrap_or(now_ms), now_ms);
    let rows = Row::all(digest["notifications"].as_array().map_or(&[], Vec::as_slice));
    if rows.is_empty() {
        return format!("Nothing unread since {since}.\n");
    }
    let counts = digest["text"].as_str().unwrap_or_default();
    format!("since {since}: {counts}\n{}", format_rows(&rows, false, Style::of_stdout()))
}
