//! `ringer lead`.

use ringer_journal::Journal;
use ringer_term::sanitise_line;
use serde_json::json;

use crate::context;
use crate::failure::Outcome;
use crate::output::{print_json, print_line};

/// Show or set this repository's lead agent
///
/// The lead is the agent session that you talk to. When it is on, the next agent
/// session that starts here is asked to listen for messages from the others.
///
/// Examples:
///   ringer lead on
///   ringer lead
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Turn the lead on or off [default: show the current one]
    #[arg(value_parser = ["on", "off"])]
    wanted: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let repository = context::repository();
    let scope = context::scope(repository.as_ref());
    let name = repository
        .and_then(|repository| repository.worktree.file_name().map(|name| name.display().to_string()));
    let name = sanitise_line(&name.unwrap_or_else(|| scope.to_string()));
    let mut journal = Journal::open(&context::home()?)?;
    if let Some(wanted) = &arguments.wanted {
        journal.want_lead(&scope, wanted == "on")?;
    }
    let lead = journal.lead(&scope)?;
    if arguments.json {
        return print_json(&json!({ "scope": scope.as_str(), "wanted": lead.wanted, "agent": lead.agent }));
    }
    print_line(&match (lead.wanted, lead.agent) {
        (false, _) => format!("No lead agent in {name}. Turn one on with: ringer lead on"),
        (true, None) => format!("The next agent session in {name} becomes its lead."),
        (true, Some(agent)) => format!("{agent} is the lead of {name}."),
    })
}
