//! `ringer answer`.

use ringer_core::message::QuestionId;
use ringer_journal::IdSource;
use serde::Serialize;

use crate::failure::Outcome;
use crate::output::print_json;
use crate::{context, hub_client};

/// Answer a question, or close it without an answer
///
/// If `ringer ask --wait` is waiting, it prints the answer and exits. Otherwise
/// the agent that asked receives the answer in its inbox. A question in an agent
/// client's dialog stays open there: answer it in the dialog.
///
/// Examples:
///   ringer answer q-1740000607-a1b2c3 "yes, but keep the old API"
///   ringer answer q-1740000607-a1b2c3
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Question id; `ringer questions` lists them
    id: String,
    /// Answer text [default: close without an answer]
    answer: Option<String>,
    /// Sender [default: $RINGER_AGENT, the agent of this worktree, or `system`]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    question_id: &'a str,
    asked_by: &'a str,
    answer: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let id = QuestionId::parse(&arguments.id)?;
    let repository = context::repository();
    let mut journal = context::journal()?;
    // An answer to the agent of this worktree is not from that agent.
    let question = journal.question(&id)?;
    let asker = question.and_then(|question| question.asker.agent());
    let sender =
        context::sender(arguments.from.as_deref(), asker.as_ref(), &mut journal, repository.as_ref())?;
    let question = journal.answer(&id, arguments.answer.as_deref(), &sender, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    context::warn_if_repaired(&journal);
    if arguments.json {
        print_json(&Report {
            question_id: question.id.as_str(),
            asked_by: question.asker.as_str(),
            answer: question.answer.as_deref(),
        })?;
    }
    Ok(())
}
