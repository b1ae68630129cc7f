//! `ringer lead`.

use ringer_journal::Journal;
use ringer_term::sanitise_line;
use serde_json::json;

use crate::failure::Outcome;
use crate::output::{print_json, print_line};
use crate::{context, guard};

/// Show or set this repository's lead agent
///
/// The lead is the agent session that you talk to. When it is on, the next agent
/// session that starts here is asked to listen for messages from the others.
///
/// Only you can answer what agents ask in their dialogs. With --may-decide the
/// lead of this repository may do that for the other agents here, not for itself.
///
/// Examples:
///   ringer lead on
///   ringer lead
///   ringer lead --may-decide
///   ringer lead --may-not-decide
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Turn the lead on or off [default: show the current one]
    #[arg(value_parser = ["on", "off"])]
    wanted: Option<String>,
    /// Let the lead allow and deny what the other agents here want to do, and answer their questions
    #[arg(long)]
    may_decide: bool,
    /// Take that permission back
    #[arg(long, conflicts_with = "may_decide")]
    may_not_decide: bool,
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
    if arguments.may_decide {
        guard::only_a_person(&mut journal, &scope, "let the lead agent decide")?;
    }
    if arguments.may_decide || arguments.may_not_decide {
        journal.let_lead_decide(&scope, arguments.may_decide)?;
    }
    let lead = journal.lead(&scope)?;
    if arguments.json {
        return print_json(&json!({
            "scope": scope.as_str(),
            "wanted": lead.wanted,
            "agent": lead.agent,
            "may_decide": lead.may_decide,
        }));
    }
    let who = match (lead.wanted, lead.agent) {
        (false, _) => format!("No lead agent in {name}. Turn one on with: ringer lead on"),
        (true, None) => format!("The next agent session in {name} becomes its lead."),
        (true, Some(agent)) => format!("{agent} is the lead of {name}."),
    };
    let may = if lead.may_decide { " It may answer what the other agents ask in their dialogs." } else { "" };
    print_line(&format!("{who}{may}"))
}
